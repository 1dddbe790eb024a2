import type { Command } from 'commander';
import type { DbOrTransaction } from '../../db/postgres/connect';
import { handle, type Answer, type OpsDeps } from '../call';
import { table } from '../output';
import { csvToRows, type CsvTypes } from './csv';
import { parseRows, readText } from './read-input';
import type { ImportOptions, ImportReport } from './report';

interface ImportKind {
  /** `merchants` or `products`. */
  readonly noun: string;
  /** Null: JSON only. */
  readonly csv: CsvTypes | null;
  readonly run: (
    db: DbOrTransaction,
    rows: readonly unknown[],
    options: ImportOptions,
  ) => Promise<ImportReport>;
}

/** Adds `<noun> import FILE`. */
export function addImportCommand(parent: Command, deps: OpsDeps, kind: ImportKind): void {
  const forms = kind.csv === null ? 'JSON' : 'JSON or CSV';
  const command = parent
    .command('import')
    .argument('<file>', `${forms} file; - for standard input`)
    .description(`Create and change ${kind.noun} from a file: all of it, or nothing when one row is wrong.`)
    .option('--dry-run', 'check everything and say what would happen, but write nothing')
    .addHelpText('after', '\nThe format, with an example: docs/import-format.md.');
  if (kind.csv !== null) command.option('--csv', 'the file is CSV; default: when its name ends in .csv');
  handle(command, deps, async ({ db, options }, file = '') => {
    const text = await readText(file, deps.stdin);
    const isCsv = kind.csv !== null && (options['csv'] === true || /\.csv$/i.test(file));
    const rows = isCsv && kind.csv !== null ? csvToRows(text, kind.csv) : parseRows(text);
    const dryRun = options['dryRun'] === true;
    // A dry run changes nothing, so it is nobody's change.
    const actor = dryRun ? '' : deps.actor;
    const report = await kind.run(db, rows, { actor, action: `${kind.noun}.import`, dryRun });
    return describe(report);
  });
}

function describe({ dryRun, created, updated, unchanged, changes }: ImportReport): Answer {
  const counts = `${created} created, ${updated} updated, ${unchanged} unchanged`;
  const said = dryRun ? `Dry run, nothing was written. It would be: ${counts}.` : `${counts}.`;
  const rows = changes.map(({ row, subject, change }) => [row, subject, change]);
  const text = rows.length === 0 ? said : `${table(['row', 'what', 'change'], rows)}\n${said}`;
  return { json: { dry_run: dryRun, created, updated, unchanged, changes }, text };
}
