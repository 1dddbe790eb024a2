import { z } from 'zod';
import { SETTING_GROUPS } from '../../runtime/config/settings';

interface Described {
  readonly description?: string;
  readonly default?: unknown;
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly enum?: readonly string[];
}

function row(name: string, schema: z.ZodType): string {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Described;
  const { description = '', default: byDefault } = json;
  const shown = [byDefault === undefined ? null : text(byDefault), boundsOf(json)].filter(
    (it) => it !== null,
  );
  return `- \`${name}\`${shown.length > 0 ? ` (${shown.join('; ')})` : ''}: ${description}`;
}

function text(value: unknown): string {
  const plain = Array.isArray(value) ? value.join(',') : String(value);
  return plain === '' ? 'none' : `\`${plain}\``;
}

/** Null: any text. */
function boundsOf({ minimum, maximum, enum: values, type }: Described): string | null {
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(', ');
  if (minimum === undefined) return type === 'string' || type === undefined ? null : type;
  return maximum === undefined || maximum === Number.MAX_SAFE_INTEGER
    ? `${minimum} or more`
    : `${minimum} to ${maximum}`;
}

/** docs/settings.md, from the settings' own schemas. */
export function settingsPage(): string {
  const groups = Object.entries(SETTING_GROUPS).map(([title, settings]) => {
    const rows = Object.entries(settings).map(([name, schema]) => row(name, schema));
    return `## ${title}\n\n${rows.join('\n')}\n`;
  });
  return `# Settings

Generated from \`runtime/config/\` by \`npm run settings\`. In brackets: the default, if there is one, and bounds. An empty value counts as not set.
The start stops at values that do not fit, and names them all. The boot log shows every setting, a password or key only as \`set\` or \`not set\`,
and a warning names a variable whose name is almost that of a setting. Of \`.env\` only what \`docker-compose.yml\` names reaches a process: \`docker compose config\` shows it.

${groups.join('\n')}`;
}
