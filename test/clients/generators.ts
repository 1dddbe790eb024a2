import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inTurn } from '../../dev/locks';
import { goInstall, runProgram, toolsFolder } from '../../dev/temporal/tools';

/** Public generators and linters of `npm run test:clients`: registries' own packages in these versions, kept in the user's cache folder. */
const OPENAPI_GENERATOR = '7.25.0';
const OAPI_CODEGEN = '2.8.2';
const OGEN = '1.24.0';
/** openapi-python-client, and what its clients and openapi-generator's need to run. */
const PYTHON = [
  'openapi-python-client==0.29.1',
  'httpx==0.28.1',
  'attrs==26.1.0',
  'python-dateutil==4.0.0',
  'pydantic==2.14.4',
  'urllib3==2.8.0',
];
const NPM = [
  '@redocly/cli@2.77.0',
  '@stoplight/spectral-cli@6.16.3',
  'openapi-fetch@0.17.0',
  'openapi-to-postmanv2@6.3.3',
  'openapi-typescript@7.13.0',
  'typescript@5.9.3',
];

/** The first fetch: minutes, on a busy machine more. */
const LIMIT_MS = 1_200_000;

interface Making {
  readonly folder: string;
  readonly say: (text: string) => void;
}

const go =
  (name: string, version: string, path: string) =>
  async ({ folder, say }: Making): Promise<void> =>
    goInstall({ packages: [`${path}@v${version}`], what: name, folder, onProgress: say });

const KINDS = {
  'openapi-generator': {
    version: OPENAPI_GENERATOR,
    async make({ folder }: Making) {
      const artifact = `org.openapitools:openapi-generator-cli:${OPENAPI_GENERATOR}`;
      const plugin = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy';
      const to = [`-DoutputDirectory=${folder}`, '-Dmdep.stripVersion=true'];
      await runProgram('mvn', ['-q', '-B', plugin, `-Dartifact=${artifact}`, ...to], { timeoutMs: LIMIT_MS });
    },
  },
  'oapi-codegen': {
    version: OAPI_CODEGEN,
    make: go('oapi-codegen', OAPI_CODEGEN, 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen'),
  },
  ogen: { version: OGEN, make: go('ogen', OGEN, 'github.com/ogen-go/ogen/cmd/ogen') },
  'Python generators': {
    version: PYTHON.join(' '),
    async make({ folder }: Making) {
      await runProgram('python3', ['-m', 'venv', folder], { timeoutMs: LIMIT_MS });
      const install = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', ...PYTHON];
      await runProgram(join(folder, 'bin/python'), install, { timeoutMs: LIMIT_MS });
    },
  },
  'npm generators': {
    version: NPM.join(' '),
    async make({ folder }: Making) {
      await writeFile(join(folder, 'package.json'), '{"private":true}');
      const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
      await runProgram('npm', ['install', ...quiet, ...NPM], { cwd: folder, timeoutMs: LIMIT_MS });
    },
  },
} as const;

export type Generator = keyof typeof KINDS;
export const GENERATORS = Object.keys(KINDS) as Generator[];

const COMPLETE = '.complete';

/**
 * Finds a generator, or fetches it once. Processes that look for it at once wait for one another.
 * @returns its folder.
 * @throws when a registry cannot be reached or a tool is missing.
 */
export async function findGenerator(
  wanted: Generator,
  say: (text: string) => void = () => undefined,
): Promise<string> {
  const kind = KINDS[wanted];
  const { version } = kind;
  const folder = join(await toolsFolder(), `client-${wanted.replace(' ', '-')}`);
  const complete = join(folder, COMPLETE);
  const stamp = `${version}\n`;
  const isThere = async () => existsSync(complete) && (await readFile(complete, 'utf8')) === stamp;
  if (await isThere()) return folder;
  await inTurn(`${folder}.lock`, { what: `which fetches ${wanted}`, onProgress: say }, async () => {
    if (await isThere()) return;
    say(`fetching ${wanted}, this once`);
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    await kind.make({ folder, say });
    await writeFile(complete, stamp);
  });
  return folder;
}
