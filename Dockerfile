# Targets: small, which has neither LibTorch nor a shell; cpu, which has modules, too; cuda for hosts with an NVIDIA driver
# and the NVIDIA Container Toolkit.
#   docker build --target cpu -t olrank:cpu .
#   docker run --rm -v "$PWD/data:/data:ro" -v "$PWD/out:/out" olrank:cpu info
# For the service, see compose.yaml and docs/SERVICE.md. scripts/check-container builds and tries the image.
# /out and /state must be writable by user 10001; or run with --user "$(id -u):$(id -g)".

# Both programs are built on the older base image, so that they also run on the newer one. Where Docker Hub is out of
# reach, another image of Debian 12: --build-arg BASE=NAME, and for the target cuda CUDA_BASE=NAME. A name with a digest
# (debian:bookworm-slim@sha256:…, which `docker buildx imagetools inspect NAME` prints) makes the same base every time.
ARG BASE=debian:bookworm-slim
ARG CUDA_BASE=nvidia/cuda:13.0.2-base-ubuntu24.04
FROM ${BASE} AS sources
WORKDIR /src
COPY . .

FROM sources AS build-cpu
RUN scripts/make-image-root --preset cpu /image

FROM sources AS build-small
RUN scripts/make-image-root --preset small /image && \
    install -d -m 755 /image/data && install -d -m 755 -o 10001 -g 10001 /image/out /image/state && install -d -m 700 -o 10001 -g 10001 /image/token

FROM sources AS build-cuda
RUN scripts/make-image-root --preset release /image

FROM scratch AS small
ARG OLRANK_VERSION=unknown
ARG OLRANK_REVISION=unknown
LABEL org.opencontainers.image.title="olrank" \
      org.opencontainers.image.description="Online learning to rank from clicks, with confidence in each pair's order" \
      org.opencontainers.image.version="${OLRANK_VERSION}" \
      org.opencontainers.image.revision="${OLRANK_REVISION}"
COPY --from=build-small /image/ /
ENV XDG_CACHE_HOME=/out/.cache LANG=C.UTF-8
USER 10001:10001
WORKDIR /out
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/olrank"]
CMD ["--help"]

FROM ${BASE} AS cpu
ARG BASE
ARG OLRANK_VERSION=unknown
ARG OLRANK_REVISION=unknown
LABEL org.opencontainers.image.title="olrank" \
      org.opencontainers.image.description="Online learning to rank from clicks, with confidence in each pair's order" \
      org.opencontainers.image.base.name="${BASE}" \
      org.opencontainers.image.version="${OLRANK_VERSION}" \
      org.opencontainers.image.revision="${OLRANK_REVISION}"
COPY --from=build-cpu /image/ /
RUN install -d -m 755 /data && install -d -m 755 -o 10001 -g 10001 /out /state && install -d -m 700 -o 10001 -g 10001 /token
ENV OLRANK_TORCH_DIR=/opt/libtorch XDG_CACHE_HOME=/out/.cache LANG=C.UTF-8
USER 10001:10001
WORKDIR /out
STOPSIGNAL SIGTERM
ENTRYPOINT ["olrank"]
CMD ["--help"]

FROM ${CUDA_BASE} AS cuda
ARG CUDA_BASE
ARG OLRANK_VERSION=unknown
ARG OLRANK_REVISION=unknown
LABEL org.opencontainers.image.title="olrank" \
      org.opencontainers.image.description="Online learning to rank from clicks, with confidence in each pair's order" \
      org.opencontainers.image.base.name="${CUDA_BASE}" \
      org.opencontainers.image.version="${OLRANK_VERSION}" \
      org.opencontainers.image.revision="${OLRANK_REVISION}"
COPY --from=build-cuda /image/ /
RUN install -d -m 755 /data && install -d -m 755 -o 10001 -g 10001 /out /state && install -d -m 700 -o 10001 -g 10001 /token
ENV OLRANK_TORCH_DIR=/opt/libtorch XDG_CACHE_HOME=/out/.cache LANG=C.UTF-8 NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 10001:10001
WORKDIR /out
STOPSIGNAL SIGTERM
ENTRYPOINT ["olrank"]
CMD ["--help"]
