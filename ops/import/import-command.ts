import type { Command } from 'commander';
import type { DbOrTransaction } from '../../db/postgres/connect';
import { handle, type Answer, type OpsDeps } from '../call';
import { differenceText } from '../differences';
import { printable } from '../output';
import { csvFaults, csvToRows, looksLikeCsv, type CsvRows, type CsvTypes } from './csv';
import { ImportRefused, refuseFile, sortFaults } from './faults';
import { parseRows, readText } from './read-input';
import type { ImportOptions, ImportReport, ReportedChange } from './report';

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
  if (kind.csv !== null)
    command.option(
      '--csv',
      'the file is CSV; default: when its name ends in .csv, or it does not begin as JSON does',
    );
  handle<{ csv?: true }>(command, deps, async ({ db, options }, file = '') => {
    const text = await readText(file, deps.stdin);
    const { dryRun = false } = options;
    // A dry run changes nothing, so it is nobody's change.
    const actor = dryRun ? '' : deps.actor;
    const how = { actor, action: `${kind.noun}.import`, dryRun };
    const isCsv =
      options.csv === true || /\.csv$/i.test(file) || (!/\.json$/i.test(file) && looksLikeCsv(text));
    if (isCsv && kind.csv === null) {
      refuseFile(`This looks like CSV; ${kind.noun} are imported from JSON: [ { … }, { … } ].`);
    }
    return isCsv && kind.csv !== null
      ? describe(await importCsv(db, csvToRows(text, kind.csv), { ...kind, how }), 'line')
      : describe(await kind.run(db, parseRows(text), how), 'row');
  });
}

/** All faults come at once: those of the cells, and those of the lines that can be read. */
async function importCsv(
  db: DbOrTransaction,
  { rows, lines, faults }: CsvRows,
  { run, how }: Pick<ImportKind, 'run'> & { readonly how: ImportOptions },
): Promise<ImportReport> {
  const broken = new Set(faults.map(({ row }) => row));
  try {
    const report = await run(db, rows, { ...how, dryRun: how.dryRun || broken.size > 0 });
    const changes = report.changes.map((one) => ({ ...one, row: lines[one.row - 1] ?? one.row }));
    if (broken.size === 0) return { ...report, changes };
  } catch (error) {
    if (!(error instanceof ImportRefused)) throw error;
    const more = error.faults.filter(({ row }) => row === null || !broken.has(row));
    throw new ImportRefused(csvFaults(sortFaults([...faults, ...more]), lines));
  }
  throw new ImportRefused(csvFaults(faults, lines));
}

/** @param place what a change is named by: a `row` of JSON, a `line` of CSV. */
function describe(
  { dryRun, created, updated, unchanged, changes }: ImportReport,
  place: 'row' | 'line',
): Answer {
  const counts = `${created} created, ${updated} updated, ${unchanged} unchanged`;
  const said = dryRun ? `Dry run, nothing was written. It would be: ${counts}.` : `${counts}.`;
  const where = ({ row, subject }: ReportedChange) => `${place} ${row}, ${printable(subject)}`;
  const lines = changes.flatMap((one) => [
    `${where(one)}: ${one.change}`,
    ...one.fields.map((field) => `    ${differenceText(field)}`),
  ]);
  const warnings = changes.flatMap((one) =>
    one.warning === null ? [] : [`WARNING: ${where(one)}: ${one.warning}`],
  );
  return {
    json: {
      dry_run: dryRun,
      created,
      updated,
      unchanged,
      changes: changes.map(({ row, ...change }) => ({ [place]: row, ...change })),
    },
    text: [...lines, ...warnings, said].join('\n'),
  };
}
