# Debian's glibc: Temporal's native module does not run on musl.
FROM node:20-bookworm-slim AS base
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# npm looks for the package.json of every workspace.
COPY clients/typescript/package.json clients/typescript/

FROM base AS build
RUN npm ci
COPY . .
RUN npm run build

# Without what only development and the embedded Postgres need.
FROM base AS dependencies
RUN npm ci --omit=dev --omit=optional --ignore-scripts

FROM node:20-bookworm-slim
# The slim image has no authorities, and Temporal's native module asks the system for them.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
ENV NODE_ENV=production
COPY package.json ./
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
USER node
CMD ["node", "--max-semi-space-size=64", "dist/bin/api.js"]
