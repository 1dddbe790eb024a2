import { Command, CommanderError, Help, type Option } from 'commander';
import { addApplicationCommands } from './applications';
import type { OpsDeps } from './call';
import { addChangeCommands } from './changes';
import { addCompletionCommand } from './completion';
import { addDeploymentCommands } from './deployments';
import { addEventCommands } from './events';
import { EXIT, toFailure } from './exit-codes';
import { faultLines } from './import/rows';
import { addKeyCommands, addServiceKeyCommands } from './keys';
import { addLenderCommands } from './lenders';
import { addMerchantCommands } from './merchants';
import { addNotificationCommands } from './notifications';
import { jsonText, printableLines } from './output';
import { addPartnerCommands } from './partners';
import { addProductCommands } from './products';
import { addQuoteCommands } from './quotes';
import { addRetentionCommands } from './retention';
import { addSecretCommands } from './secrets';
import { addStatusCommand } from './status';
import { addUsageCommand } from './usage';
import { addWebhookKeyCommands } from './webhook-secrets';
import { addWebhookCommands } from './webhooks';

const COMMANDS: readonly ((program: Command, deps: OpsDeps) => void)[] = [
  addStatusCommand,
  addPartnerCommands,
  addKeyCommands,
  addMerchantCommands,
  addProductCommands,
  addQuoteCommands,
  addLenderCommands,
  addServiceKeyCommands,
  addApplicationCommands,
  addWebhookCommands,
  addWebhookKeyCommands,
  addSecretCommands,
  addNotificationCommands,
  addRetentionCommands,
  addDeploymentCommands,
  addUsageCommand,
  addEventCommands,
  addChangeCommands,
  addCompletionCommand,
];

const NOTES = `
Exit codes: 0 done, 1 refused or failed, 2 wrong usage or an id that does not exist, 3 database or Temporal unreachable.
Every change is written to the change log (ops changes list).`;

export function buildProgram(deps: OpsDeps): Command {
  const program = new Command('ops');
  program
    .description('Operates the partner finance quote service.')
    .option('--json', 'print one JSON document instead of tables; errors too, on standard error')
    .option(
      '--wide',
      'show tables as wide as they are; default: texts and columns that fit into 120 characters',
    )
    .configureHelp({ showGlobalOptions: true, optionDescription: describeOption })
    .addHelpText('after', NOTES)
    // Commands inherit all of this: they throw instead of ending the process, and runOps prints errors.
    .exitOverride()
    .configureOutput({
      writeOut: deps.out,
      writeErr: (text) => {
        if (text.startsWith('Usage:') && program.opts()['json'] !== true) deps.err(text);
      },
      outputError: () => undefined,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
      getOutHelpWidth: () => 100,
      getErrHelpWidth: () => 100,
    });
  for (const add of COMMANDS) add(program, deps);
  return program;
}

const describeOption = (option: Option) =>
  new Help().optionDescription(option) + (option.mandatory ? ' (required)' : '');

/** Runs one command, and prints its outcome. @returns the exit code. */
export async function runOps(given: OpsDeps, args: readonly string[]): Promise<number> {
  // Errors repeat arguments and names of files. A prototype, as some fields are read only when a command needs them.
  const deps: OpsDeps = Object.assign(Object.create(given) as OpsDeps, {
    err: (text: string) => given.err(printableLines(text)),
  });
  try {
    await buildProgram(deps).parseAsync([...args], { from: 'user' });
    return EXIT.done;
  } catch (error) {
    // Help that was asked for is no failure.
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.done;
    const { exitCode, code, message, faults } = toFailure(error);
    const helpWasShown = error instanceof CommanderError && error.code === 'commander.help';
    if (args.includes('--json')) {
      const text = helpWasShown ? 'No command was named.' : message;
      deps.err(`${jsonText({ error: { code, message: text, ...(faults && { faults }) } })}\n`);
    } else if (!helpWasShown) {
      deps.err(`${faults === undefined ? '' : `${faultLines(faults)}\n`}error: ${message}\n`);
    }
    return exitCode;
  }
}
