/**
 * Fails on a migration that the release before it could not live with, unless its file says `-- contract: <reason>`, and on one that
 * would hold up writes for as long as it reads a table (docs/operations/upgrade.md). @param argv[2] another folder of migrations
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2] ?? join(import.meta.dirname, '../db/migrations');
const REASON = /^-- contract: \S/m;
const BREAKS = [
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

/** Of tables that the same file does not make; the table is in the first group. */
const BLOCKS = [
  [
    /^create\s+(?:unique\s+)?index\b(?!\s+concurrently\b).*?\son\s+(?:only\s+)?"?(\w+)/i,
    'builds an index: CREATE INDEX CONCURRENTLY IF NOT EXISTS, in a migration of its own',
  ],
  [
    /^alter\s+table\s+"?(\w+)"?\s.*\badd\s+(?:constraint\s+\S+\s+)?(?:check|foreign\s+key)\b(?!.*\bnot\s+valid$)/i,
    'checks every row: ADD CONSTRAINT … NOT VALID, and VALIDATE CONSTRAINT in the next migration',
  ],
  [
    /^alter\s+table\s+"?(\w+)"?\s.*\badd\s+(?:constraint\s+\S+\s+)?(?:unique|primary\s+key)\b(?!\s+using\s+index\b)/i,
    'builds an index: CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS in a migration of its own, then ADD CONSTRAINT … USING INDEX',
  ],
  [
    /^alter\s+table\s+"?(\w+)"?\s.*\badd\s+column\b.*\b(?:stored\b|serial\b|default\s+(?!now\(|service_now\()\w+\()/i,
    'writes every row anew: add the column without it, and fill it afterwards',
  ],
];

/** A file with one of these runs statement by statement (db/postgres/apply-migrations.ts), again after an interruption. */
const ONLINE = /\b(CONCURRENTLY|VALIDATE CONSTRAINT)\b/;
const REPEATABLE =
  /^(CREATE (UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS "\w+" ON "\w+" |DROP INDEX CONCURRENTLY IF EXISTS |ALTER TABLE "\w+" VALIDATE CONSTRAINT )/;

const unchecked = new Map();
for (const name of readdirSync(folder)
  .filter((name) => name.endsWith('.sql'))
  .toSorted()) {
  const text = readFileSync(join(folder, name), 'utf8');
  const statements = statementsOf(text);
  const made = new Set(statements.map((one) => /^create table (?:if not exists )?"?(\w+)/i.exec(one)?.[1]));
  for (const statement of statements) {
    const broken = REASON.test(text) ? undefined : BREAKS.find(([pattern]) => pattern.test(statement));
    if (broken !== undefined)
      tell(
        name,
        `${broken[1]}, and the release before it could not go on`,
        statement,
        'Add first, take away a release later; then say "-- contract: <why nothing uses it any more>" in the file.',
      );
    for (const [pattern, what] of BLOCKS) {
      const table = pattern.exec(statement)?.[1];
      if (table !== undefined && !made.has(table))
        tell(name, `holds up writes to ${table}, as it`, statement, `It ${what}.`);
    }
    if (ONLINE.test(text) && !REPEATABLE.test(statement))
      tell(name, 'has what runs outside a transaction, beside', statement, 'Put it into a migration before.');
    const [, constraint] = /\badd constraint "(\w+)" .*\bnot valid$/i.exec(statement) ?? [];
    if (constraint !== undefined) unchecked.set(constraint, [name, statement]);
    unchecked.delete(/\bvalidate constraint "(\w+)"/i.exec(statement)?.[1]);
  }
}
for (const [name, statement] of unchecked.values())
  tell(name, 'has a constraint that no later one validates', statement, 'VALIDATE CONSTRAINT in the next.');

/** Without comments, and without the bodies of functions: what those do is the business of their callers. */
function statementsOf(text) {
  return text
    .replaceAll(/\$(\w*)\$[\s\S]*?\$\1\$/g, "''")
    .split(/--> statement-breakpoint|;/)
    .map((part) => part.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ' ').trim())
    .filter((part) => part !== '');
}

function tell(name, fault, statement, remedy) {
  console.error(`db/migrations/${name} ${fault}: ${statement.slice(0, 120)}\n  ${remedy}`);
  process.exitCode = 1;
}
