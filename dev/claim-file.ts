import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { isRunning, processStatus } from './processes';

/** Who holds a claim file. A pid is used again some day; together with its start the process is known for certain. */
export interface Holder {
  readonly pid: number;
  readonly startedAt: string;
}

/**
 * Makes `file` name this process, with these facts, unless a living process holds it. What a killed one left is taken
 * over. Removing the file gives it up.
 * @returns undefined when the file is ours, else who holds it.
 */
export async function claimFile<Facts extends object>(
  file: string,
  facts: Facts,
): Promise<(Holder & Facts) | undefined> {
  const draft = draftOf(file);
  for (;;) {
    await writeFile(draft, await describe(facts));
    // A link appears with its content, and fails when the name is taken: no two processes can both have it.
    const taken = await link(draft, file).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') return false;
        throw error;
      },
    );
    await rm(draft, { force: true });
    if (taken) return undefined;

    const text = await readFile(file, 'utf8').catch(() => '');
    const holder = await livingHolder<Facts>(text);
    if (holder) return holder;
    await removeStale(file, text);
  }
}

/** Changes the facts in a file that this process holds. */
export async function restateClaim(file: string, facts: object): Promise<void> {
  await writeFile(draftOf(file), await describe(facts));
  await rename(draftOf(file), file);
}

/** A process killed while it writes leaves this behind; the name ends in its pid. */
function draftOf(file: string): string {
  return `${file}.${process.pid}`;
}

async function describe(facts: object): Promise<string> {
  const startedAt = (await processStatus(process.pid))?.startedAt ?? 'unknown';
  return JSON.stringify({ pid: process.pid, startedAt, ...facts });
}

async function livingHolder<Facts>(text: string): Promise<(Holder & Facts) | undefined> {
  let holder: Holder & Facts;
  try {
    holder = JSON.parse(text) as Holder & Facts;
  } catch {
    return undefined;
  }
  const status = await processStatus(holder.pid);
  return status?.startedAt === holder.startedAt && (await isRunning(holder.pid)) ? holder : undefined;
}

/** Another start may have taken over in between: then what was moved aside is not what was judged, and goes back. */
async function removeStale(file: string, judged: string): Promise<void> {
  const aside = `${file}.stale-${process.pid}`;
  try {
    await rename(file, aside);
  } catch {
    return;
  }
  if ((await readFile(aside, 'utf8')) !== judged) await link(aside, file).catch(() => undefined);
  await rm(aside, { force: true });
}
