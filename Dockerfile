# One image for all processes; the command selects the process. Build: docker build -t dao-data .
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
