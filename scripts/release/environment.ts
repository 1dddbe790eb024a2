import { delimiter } from 'node:path';

/** What a user has set for npm; everything else named npm_… comes from the `npm run` that started us, and names the repository. */
const KEPT = /^npm_config_(registry|userconfig|globalconfig|cache|cafile|proxy|https_proxy|noproxy)$/i;
const OF_NPM_RUN = /^(npm_.*|INIT_CWD|NODE)$/;

/** The environment of a terminal in which `bin` comes first on the PATH, and nothing leads to this repository. */
export function environmentWith(bin: string): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => KEPT.test(name) || !OF_NPM_RUN.test(name));
  const path = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => !/node_modules\/\.bin\/?$|node-gyp-bin\/?$/.test(folder));
  return { ...Object.fromEntries(kept), PATH: [bin, ...path].join(delimiter) };
}
