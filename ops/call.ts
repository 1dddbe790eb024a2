import type { Readable } from 'node:stream';
import type { Command } from 'commander';
import type { Database, Db } from '../db/connect';
import { DatabaseUnreachable } from './exit-codes';

/** What the command line needs from its surroundings. */
export interface OpsDeps {
  /** Opens the database; called only by commands that need it. @throws when no address is known. */
  readonly connect: () => Database;
  /** Writes to standard output. */
  readonly out: (text: string) => void;
  /** Writes to standard error. */
  readonly err: (text: string) => void;
  /** Standard input, for `-` as a file. */
  readonly stdin: Readable;
  /** Who runs the command, for the change log. */
  readonly actor: string;
  readonly now: () => Date;
}

/** One run of one command. */
export interface Call {
  readonly db: Db;
  readonly deps: OpsDeps;
  /** Options as commander has read them, the program's own among them. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** What a command says: a document for scripts, and text for people. */
export interface Answer {
  readonly json: unknown;
  readonly text: string;
}

/** Gives a command its work: opens the database, runs, prints the answer in the form that was asked for, closes. */
export function handle(
  command: Command,
  deps: OpsDeps,
  work: (call: Call, ...operands: string[]) => Promise<Answer>,
): Command {
  return command.action(async (...received: unknown[]) => {
    const options = command.optsWithGlobals();
    const operands = received.slice(0, -2) as string[];
    const database = open(deps);
    try {
      const answer = await work({ db: database.db, deps, options }, ...operands);
      deps.out(options['json'] === true ? `${JSON.stringify(answer.json, null, 2)}\n` : `${answer.text}\n`);
    } finally {
      await database.close();
    }
  });
}

/** An option's text; undefined when it was not given. */
export function textOption({ options }: Call, name: string): string | undefined {
  const value = options[name];
  return typeof value === 'string' ? value : undefined;
}

/** An option's number, which its parser has checked. */
export function numberOption({ options }: Call, name: string): number | undefined {
  const value = options[name];
  return typeof value === 'number' ? value : undefined;
}

function open(deps: OpsDeps): Database {
  try {
    return deps.connect();
  } catch (error) {
    throw new DatabaseUnreachable(error instanceof Error ? error.message : String(error));
  }
}
