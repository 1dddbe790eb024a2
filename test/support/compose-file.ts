import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

export interface ComposeService {
  readonly image: string;
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly environment?: Readonly<Record<string, unknown>>;
  readonly stop_grace_period?: string;
}

/** The services of docker-compose.yml; `x` stands for what comes from .env. `npm run test:containers` runs the file itself. */
export function composeServices(): Readonly<Record<string, ComposeService>> {
  const text = readFileSync(join(__dirname, '../../docker-compose.yml'), 'utf8').replaceAll(
    /\$\{\w+[^}]*\}/g,
    'x',
  );
  return (parse(text, { merge: true }) as { services: Record<string, ComposeService> }).services;
}
