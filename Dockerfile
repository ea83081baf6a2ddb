# syntax=docker/dockerfile:1
# Citeloom's server, not as root and without anything to write but the volume /library.
FROM python:3.12-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN python -m venv /citeloom \
    && /citeloom/bin/pip install --no-cache-dir -c constraints.txt '.[server]'

FROM python:3.12-slim-bookworm
RUN groupadd --gid 10001 citeloom \
    && useradd --uid 10001 --gid 10001 --create-home citeloom \
    && install -d -o citeloom -g citeloom -m 700 /library
COPY --from=build /citeloom /citeloom
ENV PATH=/citeloom/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    CITELOOM_HOME=/library
USER 10001:10001
WORKDIR /home/citeloom
VOLUME /library
EXPOSE 8765
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/api/v1/health')"]
CMD ["citeloom", "serve", "--host", "0.0.0.0", "--name", "localhost", "--name", "127.0.0.1"]
