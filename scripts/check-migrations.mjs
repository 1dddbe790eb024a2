/**
 * Fails on a migration that the release before it could not live with, unless its file says `-- contract: <reason>`
 * (docs/operations/upgrade.md).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = join(import.meta.dirname, '../db/migrations');
const REASON = /^-- contract: \S/m;
const FAULTS = [
  [/\bdrop\s+(table|column|view|type|schema|function|trigger)\b/i, 'drops what may be in use'],
  [/\brename\b/i, 'renames'],
  [/\balter\s+(column\s+)?\S+\s+(set\s+data\s+)?type\b/i, 'changes a type'],
  [/\bset\s+not\s+null\b/i, 'makes a column obligatory'],
  [/\bdrop\s+default\b/i, 'takes a default away'],
  [/^truncate\b/i, 'empties a table'],
  [
    /\badd\s+column\b(?!.*\b(default|generated)\b).*\bnot\s+null\b/i,
    'adds an obligatory column without a default',
  ],
];

for (const name of readdirSync(folder).filter((name) => name.endsWith('.sql'))) {
  const text = readFileSync(join(folder, name), 'utf8');
  if (REASON.test(text)) continue;
  for (const statement of statementsOf(text))
    for (const [pattern, what] of FAULTS) if (pattern.test(statement)) tell(name, what, statement);
}

/** Without comments, and without the bodies of functions: what those do is the business of their callers. */
function statementsOf(text) {
  return text
    .replaceAll(/\$(\w*)\$[\s\S]*?\$\1\$/g, "''")
    .split(/--> statement-breakpoint|;/)
    .map((part) => part.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ' ').trim());
}

function tell(name, what, statement) {
  console.error(
    `db/migrations/${name} ${what}, and the release before it could not go on: ${statement.slice(0, 120)}\n` +
      `  Add first, take away a release later; then say "-- contract: <why nothing uses it any more>" in the file.`,
  );
  process.exitCode = 1;
}
