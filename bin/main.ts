interface Help {
  readonly usage: string;
  readonly purpose: string;
}

/**
 * Prints the help when `--help` is among the arguments.
 * @returns whether it did
 */
export function helped({ usage, purpose }: Help): boolean {
  if (!process.argv.slice(2).some((argument) => argument === '--help' || argument === '-h')) return false;
  process.stdout.write(
    `Usage: ${usage}\n\n${purpose}\nSettings are environment variables: docs/settings.md\n`,
  );
  return true;
}

export function main(name: string, help: Help, run: () => Promise<void>): void {
  if (helped(help)) return;
  run().catch((error: unknown) => {
    console.error(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  });
}
