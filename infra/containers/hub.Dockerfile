# syntax=docker/dockerfile:1
# The hub: docker buildx build --platform linux/amd64 -f infra/containers/hub.Dockerfile -t buildscale .
#
#   docker run -p 127.0.0.1:8686:8686 -v buildscale:/data -e BUILDSCALE__SERVER__AUTH_TOKEN=... buildscale
#
# It listens on every address of the container, so it starts only with a token or with accounts. Not distroless, as agents run commands
# beside it: it has a shell and the tools that they use most, and no root.
#
# Not built yet: where this was written there is no Docker. The stage `build` is that of the other two images, but for the console.
ARG RUST=1.95.0-slim-bookworm
# The page at /, which the binary embeds.
FROM --platform=$BUILDPLATFORM node:24.9.0-bookworm-slim AS console
WORKDIR /src
COPY functions/console functions/console
COPY clients clients
RUN cd functions/console/web && npm ci --no-audit --no-fund && npm run build

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
COPY --from=console /src/functions/console/dist functions/console/dist
# The version of the image; it overrides rust-toolchain.toml.
ENV RUSTUP_TOOLCHAIN=1.95.0 \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=x86_64-linux-gnu-gcc \
    CC_x86_64_unknown_linux_gnu=x86_64-linux-gnu-gcc
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    case "$TARGETARCH" in arm64) target=aarch64-unknown-linux-gnu ;; *) target=x86_64-unknown-linux-gnu ;; esac \
    && rustup target add "$target" \
    && cargo build --locked --release --target "$target" --package buildscale-hub --bin buildscale \
    && cp "target/$target/release/buildscale" /buildscale

FROM debian:12.12-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends bash ca-certificates coreutils curl diffutils file findutils git gawk grep jq make patch python3 sed tar unzip xz-utils \
    && rm -rf /var/lib/apt/lists/* \
    # Nothing here may become somebody else.
    && find / -xdev -perm /6000 -type f -exec chmod a-s {} + \
    && groupadd --gid 65532 nonroot && useradd --uid 65532 --gid 65532 --home-dir /data --shell /bin/bash nonroot \
    && install -d -m 0700 -o 65532 -g 65532 /data
COPY --from=build /buildscale /usr/local/bin/buildscale
# Everything is kept here; a new volume takes owner and mode from this folder.
VOLUME /data
WORKDIR /data
USER 65532:65532
EXPOSE 8686
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD curl -fsS http://127.0.0.1:8686/health || exit 1
ENTRYPOINT ["/usr/local/bin/buildscale"]
CMD ["serve", "--data-dir", "/data", "--listen", "0.0.0.0:8686", "--allow-public"]
