import type { Readable } from 'node:stream';
import type { Command, OptionValues } from 'commander';
import { appendChange, type Change } from '../db/audit/change-log';
import type { KeyEnvironment } from '../db/keys';
import type { MomentOrAgo } from '../db/notifications/recoverable';
import type { Database, Db, DbOrTransaction } from '../db/postgres/connect';
import type { WebhookUrlCheck } from '../domain/webhook';
import { DatabaseUnreachable } from './exit-codes';
import { checkIds } from './ids';
import type { OpsOptions } from './options';
import { jsonText, printableLines, textOf, WIDEST, type Answer } from './output';
import type { WorkflowCode } from '../runtime/temporal/workflow-code';
import type { TemporalOrders } from './temporal';

/** What the command line needs from its surroundings. Functions are called only by commands that need them. */
export interface OpsDeps extends Pick<OpsOptions, 'keyRing' | 'storyUrl' | 'retentionAt' | 'embedded'> {
  readonly connect: () => Database;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly stdin: Readable;
  /** Who makes a change, for the change log; read before the change begins. @throws for a shared account in production. */
  readonly actor: string;
  /** By the clock of the database: the one of this machine may be wrong. */
  readonly now: (db: DbOrTransaction) => Promise<Date>;
  /** From this call on, a first interrupt or request to end aborts this signal; a second one ends the process. */
  readonly interruptible: () => AbortSignal;
  readonly checkTarget: (url: string) => Promise<WebhookUrlCheck>;
  readonly temporal: () => Promise<TemporalOrders>;
  /** The workflow code of this release. */
  readonly workflows: () => WorkflowCode;
}

interface SharedOptions {
  readonly json?: true;
  readonly wide?: true;
  readonly partner?: string;
  readonly environment?: KeyEnvironment;
  readonly lender?: string;
  readonly merchant?: string;
  readonly merchantReference?: string;
  readonly since?: MomentOrAgo;
  readonly until?: MomentOrAgo;
  /** In seconds. */
  readonly expiresIn?: number;
  readonly dryRun?: true;
  readonly yes?: true;
  readonly perSecond?: number;
}

export interface Owner {
  readonly partner: string;
  readonly environment: KeyEnvironment;
}

export interface Call<Own = object> {
  readonly db: Db;
  readonly deps: OpsDeps;
  /** Those of the program and of the command, of which `Own` are the command's alone. */
  readonly options: Omit<SharedOptions, keyof Own> & Readonly<Own>;
  /** Arguments as they were typed, for a command that is to be repeated with something else. */
  readonly args: readonly string[];
}

/** What help shows after a command's options. @param lines with a newline before each */
export const examplesText = (lines: string) => `\nExamples:${lines}`;

export const group = (parent: Command, name: string, description: string, examples: string) =>
  parent.command(name).description(description).addHelpText('after', examplesText(examples));

/** Defines a command's work: opens the database, runs, prints the answer in the wanted form, closes. */
export function handle<Own = object>(
  command: Command,
  deps: OpsDeps,
  work: (call: Call<Own>, ...operands: string[]) => Promise<Answer>,
): void {
  command.action(async (...received: unknown[]) => {
    const options = command.optsWithGlobals<SharedOptions & Own & OptionValues>();
    const operands = received.slice(0, -2) as string[];
    const database = open(deps);
    try {
      await checkIds(database.db, command);
      const { json, text, failure } = await work(
        { db: database.db, deps, options, args: argsOf(command) },
        ...operands,
      );
      if (options.json) deps.out(`${jsonText(json)}\n`);
      else deps.out(`${printableLines(textOf(text, options.wide ? Infinity : WIDEST))}\n`);
      if (failure !== undefined) throw new Error(failure);
    } finally {
      await database.close();
    }
  });
}

/** Commander has them, though its types do not say so. */
function argsOf(command: Command): readonly string[] {
  const { parent } = command;
  return parent === null ? (command as unknown as { rawArgs: string[] }).rawArgs : argsOf(parent);
}

function open(deps: OpsDeps): Database {
  try {
    return deps.connect();
  } catch (error) {
    throw new DatabaseUnreachable((error as Error).message);
  }
}

type Log = (subject: Change['subject'], details: Change['details']) => Promise<void>;

export async function changeAndLog<Done>(
  { db, deps: { actor } }: Pick<Call, 'db' | 'deps'>,
  action: string,
  change: (tx: DbOrTransaction, log: Log) => Promise<Done>,
): Promise<Done> {
  return db.transaction((tx) =>
    change(tx, (subject, details) => appendChange(tx, { actor, action, subject, details })),
  );
}
