import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Sql } from './driver/client';

/**
 * The functions that have files of their own, outside the migrations: `migrate` installs them after those. The name of each ends with
 * its version. While two builds run, both versions are installed, and each build calls its own (docs/operations/upgrade.md).
 */
const FILES = ['claim', 'open', 'record'].map((name) => join(__dirname, '../notifications', `${name}.sql`));

const FUNCTION = /^CREATE OR REPLACE FUNCTION (\w+)\([\s\S]*?\$\$([\s\S]*?)\$\$;$/gm;

const textOf = (file: string) => readFileSync(file, 'utf8').replaceAll('\r\n', '\n');

/** Creates or replaces them all; what is there already with the same text stays as it is. */
export async function installFunctions(sql: Sql): Promise<void> {
  for (const file of FILES) await sql.unsafe(textOf(file));
}

/** The names of those that are missing in a database, or whose text there is not that of their file. */
export async function differentFunctions(sql: Sql): Promise<string[]> {
  const installed = await sql.unsafe<{ name: string; text: string }[]>(
    `select proname::text as name, prosrc as text from pg_proc where pronamespace = 'public'::regnamespace`,
  );
  const texts = new Map(installed.map(({ name, text }) => [name, text]));
  return FILES.flatMap((file) => [...textOf(file).matchAll(FUNCTION)])
    .filter(([, name = '', text]) => texts.get(name) !== text)
    .map(([, name = '']) => name);
}
