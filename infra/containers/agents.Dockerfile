# syntax=docker/dockerfile:1
# A sandbox with coding agents: docker build --build-arg SANDBOX=IMAGE --build-arg "AGENTS=@google/gemini-cli@0.61.0 opencode-ai@1.18.33" -f infra/containers/agents.Dockerfile .
#
# SANDBOX is an image of sandbox.Dockerfile. The result is its SandboxImage; CodingAgents then names the agents that it has.
ARG SANDBOX
FROM node:22.20.0-bookworm-slim AS agents
ARG AGENTS
RUN npm install --global --prefix /opt/agents --no-audit --no-fund $AGENTS

# checkov:skip=CKV_DOCKER_7: The image has the tag that the caller gives.
FROM ${SANDBOX}
COPY --from=agents /usr/local/bin/node /usr/local/bin/node
COPY --from=agents /opt/agents /opt/agents
ENV PATH=/opt/agents/bin:/usr/local/bin:/usr/bin:/bin
USER 65532:65532
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD curl -fsS http://127.0.0.1:8080/health || exit 1
