# syntax=docker/dockerfile:1
# The stream server: docker buildx build --platform linux/arm64 -f infra/containers/stream.Dockerfile .
#
# Built on the machine's own platform for the target's, since emulating a compiler takes an hour. The result has no shell, no package
# manager and no root.
ARG RUST=1.95.0-slim-bookworm
FROM --platform=$BUILDPLATFORM rust:${RUST} AS build
ARG BUILDARCH
ARG TARGETARCH
WORKDIR /src
RUN case "$BUILDARCH-$TARGETARCH" in \
        amd64-arm64) cross="gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;; \
        arm64-amd64) cross="gcc-x86-64-linux-gnu libc6-dev-amd64-cross" ;; \
    esac \
    && apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev $cross \
    && rm -rf /var/lib/apt/lists/*
COPY . .
# The version of the image; it overrides rust-toolchain.toml.
ENV RUSTUP_TOOLCHAIN=1.95.0 \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=x86_64-linux-gnu-gcc \
    CC_x86_64_unknown_linux_gnu=x86_64-linux-gnu-gcc
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    case "$TARGETARCH" in arm64) target=aarch64-unknown-linux-gnu ;; *) target=x86_64-unknown-linux-gnu ;; esac \
    && rustup target add "$target" \
    && cargo build --locked --profile lambda --target "$target" --package buildscale-cloud --bin buildscale-stream \
    && cp "target/$target/lambda/buildscale-stream" /buildscale-stream

# glibc and certificates, nothing else.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /buildscale-stream /usr/local/bin/buildscale-stream
# A volume in the task, which takes its mode (anybody may write) from this folder.
VOLUME /tmp
USER 65532:65532
EXPOSE 8080
# There is no shell to ask with: the load balancer asks /health.
HEALTHCHECK NONE
ENTRYPOINT ["/usr/local/bin/buildscale-stream"]
