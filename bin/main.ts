/** What `--help` prints of a process. */
export interface Help {
  /** Its file, and what is written behind it. */
  readonly usage: string;
  /** What it is for, in a sentence. */
  readonly purpose: string;
}

/** Answers `--help`, whatever stands beside it. @returns true when it was asked for: nothing else is to be done then. */
export function helped({ usage, purpose }: Help): boolean {
  if (!process.argv.slice(2).some((argument) => argument === '--help' || argument === '-h')) return false;
  process.stdout.write(
    `Usage: ${usage}\n\n${purpose}\nSettings are environment variables: docs/settings.md\n`,
  );
  return true;
}

/** Runs a process' entry point; what it throws ends the process with 1 and a line that says what. */
export function main(name: string, help: Help, run: () => Promise<void>): void {
  if (helped(help)) return;
  run().catch((error: unknown) => {
    console.error(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  });
}
