import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';

const root = join(__dirname, '..', '..');
const FILES = ['Dockerfile', 'docker-compose.yml'];
let directory: string;

beforeEach(async () => {
  directory = await temporaryDirectory('pin');
  for (const name of FILES) copyFileSync(join(root, name), join(directory, name));
  mkdirSync(join(directory, 'bin'));
  // The whole PATH: a machine that has docker or skopeo must not ask a registry here.
  for (const name of ['sha256sum', 'cut'])
    symlinkSync(execFileSync('which', [name], { encoding: 'utf8' }).trim(), join(directory, 'bin', name));
});
afterEach(() => removeDirectory(directory));

/** Stands in for the program that asks a registry: neither can be had here. */
function tool(name: 'docker' | 'skopeo', script: string): void {
  writeFileSync(join(directory, 'bin', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

function pin(): { status: number | null; stderr: string } {
  return spawnSync(process.execPath, [join(root, 'scripts/pin-images.mjs'), directory], {
    env: { PATH: join(directory, 'bin') },
    encoding: 'utf8',
  });
}

const text = (name: string) => readFileSync(join(directory, name), 'utf8');

/** Of the image's name, so that each has another. */
const DIGEST =
  'for last; do :; done; printf "sha256:%s" "$(printf %s "$last$SALT" | sha256sum | cut -c1-64)"';

test('adds the digest behind every tag, and renews it', () => {
  tool('docker', DIGEST);
  expect(pin()).toMatchObject({ status: 0 });
  expect(text('Dockerfile')).toMatch(/^FROM node:24-bookworm-slim@sha256:[0-9a-f]{64} AS base$/m);
  expect(text('Dockerfile')).toMatch(/^FROM base AS build$/m);
  const services = Object.values(
    (parse(text('docker-compose.yml'), { merge: true }) as { services: Record<string, { image: string }> })
      .services,
  );
  const foreign = services.map(({ image }) => image).filter((image) => !image.startsWith('partner-finance-'));
  expect(foreign.length).toBeGreaterThanOrEqual(6);
  for (const image of foreign) expect(image).toMatch(/^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/);
  expect(new Set(foreign.map((image) => image.split('@')[1])).size).toBe(new Set(foreign).size);

  const before = FILES.map(text);
  expect(pin()).toMatchObject({ status: 0 });
  expect(FILES.map(text)).toEqual(before);
  tool('docker', `SALT=new; ${DIGEST}`);
  expect(pin()).toMatchObject({ status: 0 });
  expect(text('Dockerfile')).not.toBe(before[0]);
  expect(text('Dockerfile').length).toBe(before[0]?.length);
});

test('takes skopeo where docker is missing', () => {
  tool('skopeo', DIGEST);
  expect(pin()).toMatchObject({ status: 0 });
  expect(text('Dockerfile')).toMatch(/@sha256:/);
});

test.each([
  ['without either program', '', /docker: not installed\nskopeo: not installed/],
  ['when the registry cannot be reached', 'echo "no such host" >&2; exit 1', /no such host/],
  ['when something else than a digest is printed', 'echo sha256:abc', /docker printed no digest: sha256:abc/],
  [
    'when one image of several is unknown',
    `case "$*" in *haproxy*) exit 1;; esac; ${DIGEST}`,
    /No digest of haproxy/,
  ],
])('changes nothing %s', (_when, script, fault) => {
  if (script !== '') tool('docker', script);
  const before = FILES.map(text);
  const { status, stderr } = pin();
  expect(status).toBe(1);
  expect(stderr).toMatch(fault);
  expect(FILES.map(text)).toEqual(before);
});
