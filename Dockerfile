# One image for every process; the command says which. Build: docker build -t dao-data .
FROM node:20.20-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund

FROM node:20.20-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY package.json tsconfig.json ./
COPY shared shared
COPY clickhouse clickhouse
COPY workers workers
COPY api api
USER node
CMD ["node", "--import", "tsx", "api/main.ts"]
