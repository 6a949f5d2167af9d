# syntax=docker/dockerfile:1
# A sandbox: docker buildx build --platform linux/arm64 -f infra/containers/sandbox.Dockerfile .
#
# Built on the machine's own platform for the target's, since emulating a compiler takes an hour. The result is
# not distroless, as agents run commands here: it has a shell and the tools that they use most, and no root.
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
    && cargo build --locked --profile lambda --target "$target" --package buildscale-cloud --bin buildscale-sandbox \
    && cp "target/$target/lambda/buildscale-sandbox" /buildscale-sandbox

FROM debian:12.12-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends bash ca-certificates coreutils curl diffutils file findutils git gawk grep jq make patch python3 sed tar unzip xz-utils \
    && rm -rf /var/lib/apt/lists/* \
    # Nothing here may become somebody else.
    && find / -xdev -perm /6000 -type f -exec chmod a-s {} + \
    && groupadd --gid 65532 nonroot && useradd --uid 65532 --gid 65532 --home-dir /workspace --shell /bin/bash nonroot \
    && install -d -o 65532 -g 65532 /workspace
COPY --from=build /buildscale-sandbox /usr/local/bin/buildscale-sandbox
# The mirror, and what commands write: in the task volumes on the NVMe, which take owner and mode from these folders.
VOLUME /workspace /tmp
WORKDIR /workspace
# A task of ECS starts it as root, and it becomes the user of its workspace; see containers.yaml.
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD curl -fsS http://127.0.0.1:8080/health || exit 1
ENTRYPOINT ["/usr/local/bin/buildscale-sandbox"]
