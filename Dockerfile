# Debian's glibc: Temporal's native module does not run on musl. Renovate adds the digest (renovate.json).
FROM node:24-bookworm-slim AS base
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# npm looks for the package.json of every workspace.
COPY clients/typescript/package.json clients/typescript/

FROM base AS build
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build

# Without what only development and the embedded stack need. dist/sbom.cdx.json lists these packages, and those in the documentation site.
FROM base AS dependencies
RUN npm ci --omit=dev --omit=optional --workspaces=false --ignore-scripts
# Temporal's native module comes for five platforms, 30 MB each, and with its source; packages bring declarations, maps and pages.
RUN cd node_modules/@temporalio/core-bridge && rm -r sdk-core \
  && find releases -mindepth 1 -maxdepth 1 ! -name "$(uname -m)-unknown-linux-gnu" -exec rm -r {} + \
  && cd /app/node_modules && find . -type f \( -name '*.ts' -o -name '*.map' -o -name '*.md' -o -name '*.flow' \) -delete

FROM base
# The slim image has no authorities, and Temporal's native module asks the system for them.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/* package-lock.json .npmrc clients
ENV NODE_ENV=production
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
# New volumes of the job `certificates` get owner and mode from here.
RUN mkdir /certificates && cd /certificates \
  && install -d -o node -g node -m 700 authority server client \
  && install -d -o node -g node -m 750 console
USER node
CMD ["node", "--max-semi-space-size=32", "--no-allocation-site-pretenuring", "dist/bin/api.js"]
