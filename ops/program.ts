import { Command, CommanderError } from 'commander';
import type { OpsDeps } from './call';
import { addApplicationCommands } from './applications';
import { addChangeCommands } from './changes';
import { addDeploymentCommands } from './deployments';
import { addEventCommands } from './events';
import { EXIT, toFailure, type Failure } from './exit-codes';
import { addKeyCommands } from './keys';
import { addLenderCommands } from './lenders';
import { addMerchantCommands } from './merchants';
import { addNotificationCommands } from './notifications';
import { faultLines } from './import/rows';
import { addPartnerCommands } from './partners';
import { addProductCommands } from './products';
import { addQuoteCommands } from './quotes';
import { addRetentionCommands } from './retention';
import { addSecretCommands } from './secrets';
import { addServiceKeyCommands } from './service-keys';
import { addUsageCommand } from './usage';
import { addWebhookKeyCommands } from './webhook-keys';
import { addWebhookCommands } from './webhooks';

const NOTES = `
Exit codes: 0 done, 1 refused or failed, 2 wrong usage or an id that does not exist, 3 database or Temporal unreachable.
Every change is written to the change log (ops changes list).`;

/** The whole command line. Nothing runs, and nothing is opened, before it is given arguments. */
export function buildProgram(deps: OpsDeps): Command {
  const program = new Command('ops')
    .description('Operates the partner finance quote service.')
    .option('--json', 'print one JSON document instead of tables; errors too, on standard error')
    .option(
      '--wide',
      'show tables as wide as they are; default: texts and columns that fit into 120 characters',
    )
    .configureHelp({ showGlobalOptions: true })
    .addHelpText('after', NOTES);
  addPartnerCommands(program, deps);
  addKeyCommands(program, deps);
  addMerchantCommands(program, deps);
  addProductCommands(program, deps);
  addQuoteCommands(program, deps);
  addLenderCommands(program, deps);
  addServiceKeyCommands(program, deps);
  addApplicationCommands(program, deps);
  addWebhookCommands(program, deps);
  addWebhookKeyCommands(program, deps);
  addSecretCommands(program, deps);
  addNotificationCommands(program, deps);
  addRetentionCommands(program, deps);
  addDeploymentCommands(program, deps);
  addUsageCommand(program, deps);
  addEventCommands(program, deps);
  addChangeCommands(program, deps);
  prepare(program, deps);
  return program;
}

/**
 * Runs one command.
 * @param args arguments without the interpreter and the script.
 * @returns the exit code; every outcome has been printed.
 */
export async function runOps(deps: OpsDeps, args: readonly string[]): Promise<number> {
  try {
    await buildProgram(deps).parseAsync([...args], { from: 'user' });
    return EXIT.done;
  } catch (error) {
    // Help that was asked for is no failure.
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.done;
    const failure = toFailure(error);
    tell(
      deps,
      failure,
      args.includes('--json'),
      error instanceof CommanderError && error.code === 'commander.help',
    );
    return failure.exitCode;
  }
}

function tell(deps: OpsDeps, failure: Failure, json: boolean, helpWasShown: boolean): void {
  const { code, message, faults } = failure;
  if (json) {
    const text = helpWasShown ? 'No command was named.' : message;
    deps.err(`${JSON.stringify({ error: { code, message: text, ...(faults && { faults }) } }, null, 2)}\n`);
  } else if (!helpWasShown) {
    deps.err(`${faults === undefined ? '' : `${faultLines(faults)}\n`}error: ${message}\n`);
  }
}

/** Every command throws instead of ending the process, and leaves the printing of errors to runOps. */
function prepare(command: Command, deps: OpsDeps): void {
  command.exitOverride().configureOutput({
    writeOut: deps.out,
    // Help shown because nothing was asked for; for scripts the error says it all.
    writeErr: (text) => (text.startsWith('Usage:') ? helpToErr(command, deps, text) : undefined),
    outputError: () => undefined,
    getOutHasColors: () => false,
    getErrHasColors: () => false,
    getOutHelpWidth: () => 100,
    getErrHelpWidth: () => 100,
  });
  for (const inner of command.commands) prepare(inner, deps);
}

function helpToErr(command: Command, deps: OpsDeps, text: string): void {
  if (command.optsWithGlobals()['json'] !== true) deps.err(text);
}
