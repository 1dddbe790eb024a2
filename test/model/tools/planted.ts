import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from '../../../db/postgres/connect';

/** A change of one line. */
interface Patch {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** A fault of the service, and the same in the model, which the search finds in this world. */
interface PlantedFault {
  readonly name: string;
  readonly world: string;
  readonly service: Patch;
  readonly model: Patch;
}

/** @param lines its file, and what is there without (`-`) and with the fault (`+`) */
function patchOf(lines: readonly string[]): Patch {
  const text = (sign: string) => lines.filter((line) => line.startsWith(sign)).map((line) => line.slice(1));
  return { file: lines[0] ?? '', from: text('-').join('\n'), to: text('+').join('\n') };
}

function faultOf(text: string): PlantedFault {
  const [name = '', world = '', ...lines] = text.trimEnd().split('\n');
  const model = lines.findIndex((line) => line.startsWith('test/model/'));
  return {
    name: name.replace('# ', ''),
    world: world.replace('found in: ', ''),
    service: patchOf(lines.slice(0, model)),
    model: patchOf(lines.slice(model)),
  };
}

export const FAULTS = readFileSync(join(__dirname, 'planted.diff'), 'utf8').split('\n\n').map(faultOf);

/** @throws when the text has changed, so that the fault is none any more */
export function patched(text: string, { file, from, to }: Patch): string {
  if (!text.includes(from)) throw new Error(`${file} has no "${from}" to break`);
  return text.replace(from, () => to);
}

const root = join(__dirname, '../../..');

/** Puts a fault into the functions of one database. */
export const plant = (sql: Database['sql'], { service }: PlantedFault) =>
  sql.unsafe(patched(readFileSync(join(root, service.file), 'utf8'), service));
