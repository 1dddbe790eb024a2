import type { Readable } from 'node:stream';
import type { Command, OptionValues } from 'commander';
import type { KeyEnvironment } from '../db/keys/key';
import type { Database, Db } from '../db/postgres/connect';
import type { KeyRing } from '../db/endpoints/key-ring';
import { DatabaseUnreachable } from './exit-codes';
import { checkIds } from './known-ids';
import type { Answer } from './output';

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
  /** Who makes a change, for the change log; read before it is begun, and by nothing that only reads. @throws when that is anybody's account. */
  readonly actor: string;
  readonly now: () => Date;
  /**
   * From this call on, an interrupt or a request to end no longer ends the process but aborts this signal: for work that
   * has to be left in order. A second one ends it.
   */
  readonly interruptible: () => AbortSignal;
  /** When what is past its time is removed. */
  readonly retentionAt: () => string;
  /** Lets a worker remove now what is past its time, waiting for Temporal for 5 s at most. */
  readonly startRetention: () => Promise<RetentionStartAnswer>;
  /** Keys that webhook secrets are sealed with; called only by commands that need them. @throws when none are known. */
  readonly keyRing: () => KeyRing;
  /** Checks a URL that is to be registered: its form, that its name resolves, and that all addresses are public ones. */
  readonly checkTarget: (url: string) => Promise<TargetCheck>;
  /** Gives an order to the workflow of a delivery, waiting for Temporal for 1.5 s at most. */
  readonly orderDelivery: (delivery: DeliveryRef, order: DeliveryOrder) => Promise<OrderAnswer>;
  /** Address of a delivery in Temporal's web page; null when no such page is known. */
  readonly storyUrl: (delivery: DeliveryRef) => string | null;
  /** The builds of the worker, as Temporal knows them. */
  readonly deployment: DeploymentOrders;
}

/** Temporal is not there. */
interface Unreachable {
  readonly kind: 'unreachable';
  readonly address: string;
  readonly why: string;
}

export type RetentionStartAnswer =
  | { readonly kind: 'started' }
  /** One that was started by hand has not ended. */
  | { readonly kind: 'under_way' }
  | Unreachable;

export interface DeploymentState {
  /** Null: workers without versions get what is new. */
  readonly current: string | null;
  readonly ramping: { readonly buildId: string; readonly percent: number } | null;
  readonly builds: readonly { readonly buildId: string; readonly status: string }[];
}

/** What can be asked of a worker deployment, and done with it. */
export interface DeploymentOrders {
  describe(): Promise<DeploymentAnswer<DeploymentState>>;
  /** Takes about 20 s. */
  setCurrent(buildId: string): Promise<DeploymentAnswer<void>>;
  /** Gives a build a share of the deliveries, 0 to 100 %; with null nobody ramps any more. */
  ramp(buildId: string | null, percent: number): Promise<DeploymentAnswer<void>>;
}

export type DeploymentAnswer<T> =
  | { readonly kind: 'done'; readonly value: T }
  /** In Temporal's words: it knows no such deployment or build, or no worker of it is there. */
  | { readonly kind: 'refused'; readonly why: string }
  | Unreachable;

export type TargetCheck =
  | {
      readonly ok: true;
      /** As it is to be stored. */
      readonly url: string;
    }
  | { readonly ok: false; readonly message: string };

/** A delivery under way: the workflow of one generation of a notification. */
export interface DeliveryRef {
  readonly notificationId: string;
  readonly generation: number;
}

/** What an operator can tell a delivery. */
export type DeliveryOrder = 'retryNow' | 'pause' | 'resume' | 'cancel';

export type OrderAnswer =
  | { readonly kind: 'taken' }
  /** Temporal knows no such workflow, or it has ended. */
  | { readonly kind: 'no_workflow' }
  | Unreachable;

/** Options that more than one command has, as their parsers leave them; absent when not given. */
interface SharedOptions {
  readonly json?: true;
  readonly wide?: true;
  readonly partner?: string;
  readonly environment?: KeyEnvironment;
  readonly dryRun?: true;
  readonly yes?: true;
  readonly perSecond?: number;
}

/** One run of one command. */
export interface Call<Own = object> {
  readonly db: Db;
  readonly deps: OpsDeps;
  /** Those of the program and of the command, of which `Own` are the command's alone. */
  readonly options: SharedOptions & Readonly<Own>;
  /** Arguments as they were typed, for a command that is to be repeated with something else. */
  readonly args: readonly string[];
}

/** Gives a command its work: opens the database, runs, prints the answer in the form that was asked for, closes. */
export function handle<Own = object>(
  command: Command,
  deps: OpsDeps,
  work: (call: Call<Own>, ...operands: string[]) => Promise<Answer>,
): Command {
  return command.action(async (...received: unknown[]) => {
    const options = command.optsWithGlobals<Call<Own>['options'] & OptionValues>();
    const operands = received.slice(0, -2) as string[];
    const database = open(deps);
    try {
      await checkIds(database.db, command);
      const answer = await work({ db: database.db, deps, options, args: argsOf(command) }, ...operands);
      const text = options.wide ? (answer.wide ?? answer.text) : answer.text;
      deps.out(options.json ? `${jsonText(answer.json)}\n` : `${text}\n`);
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

/** Characters that control a terminal, or what is read there, and that JSON leaves as they are: a partner's answer may hold any. */
function jsonText(document: unknown): string {
  return JSON.stringify(document, null, 2).replaceAll(/[\u007F-\u009F\u2028\u2029\p{Cf}]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

function open(deps: OpsDeps): Database {
  try {
    return deps.connect();
  } catch (error) {
    throw new DatabaseUnreachable(error instanceof Error ? error.message : String(error));
  }
}
