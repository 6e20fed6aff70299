# One image for all processes; the command selects the process. Build: docker build -t dao-data .
# The target `all` has the stores too, for a first try on a server: docker build --target all -t dao-data-all .
# The newest long-term support release of Node; 20.19 is enough to run it.
ARG NODE=26-bookworm-slim

FROM node:${NODE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./

FROM packages AS build
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json LICENSE ./
COPY tools tools
COPY test test
COPY shared shared
COPY clickhouse clickhouse
COPY workers workers
COPY api api
COPY clients clients
COPY web web
RUN npm run build

# Without development dependencies and ClickHouse's package, because its server runs in another container.
FROM packages AS production
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

# With ClickHouse's package, and the parser of the stand-in for the providers of the demo.
FROM packages AS production-all
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && npm install --no-save --omit=dev --ignore-scripts --no-audit --no-fund \
    "graphql@$(node -p 'require("./package-lock.json").packages["node_modules/graphql"].version')"

# The whole system in one container: docker run -p 127.0.0.1:3000:3000 -v dao-data:/data dao-data-all [demo|live]
FROM node:${NODE} AS all
RUN apt-get update && apt-get install -y --no-install-recommends redis-server && rm -rf /var/lib/apt/lists/* \
  && install -d -o node -g node /data
ENV NODE_ENV=production NODE_OPTIONS=--enable-source-maps
WORKDIR /app
COPY --from=production-all /app/node_modules node_modules
COPY package.json ./
COPY --from=build /app/dist/ ./
VOLUME /data
EXPOSE 3000
USER node
ENTRYPOINT ["sh", "tools/container.sh"]
CMD ["demo"]

# The default, which Docker Compose builds.
FROM node:${NODE}
ENV NODE_ENV=production NODE_OPTIONS=--enable-source-maps
WORKDIR /app
COPY --from=production /app/node_modules node_modules
COPY package.json ./
COPY --from=build /app/dist/shared shared
COPY --from=build /app/dist/clickhouse clickhouse
COPY --from=build /app/dist/workers workers
COPY --from=build /app/dist/api api
COPY --from=build /app/dist/web web
USER node
CMD ["node", "api/main.js"]
