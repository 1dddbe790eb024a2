import { Argument, type Command } from 'commander';
import { examplesText, type OpsDeps } from './call';

const EXAMPLES = `
  source <(ops completion bash)     # zsh too
  ops completion fish | source`;

const SHELLS = ['bash', 'zsh', 'fish'] as const;

export function addCompletionCommand(program: Command, deps: OpsDeps): void {
  program
    .command('completion')
    .description('Print a script with which a shell completes commands, options and their values.')
    .addArgument(new Argument('<shell>', 'whose').choices(SHELLS))
    .addHelpText('after', examplesText(EXAMPLES))
    .action((shell: (typeof SHELLS)[number]) => deps.out(SCRIPTS[shell](rowsOf(program, program))));
}

type Rows = readonly (readonly [after: string, words: string])[];

/** What may follow each command, and each option whose values are listed: ` keys` is followed by `create list …`. */
function rowsOf(program: Command, command: Command, path = ''): Rows {
  const { commands, options, registeredArguments } = command;
  const flags = [...new Set([...options, ...program.options])];
  const values = registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  const words = [...commands.map((one) => one.name()), ...values, ...flags.map(({ long }) => long), '--help'];
  return [
    [path, words.join(' ')],
    ...flags.flatMap(({ long, argChoices }) =>
      argChoices === undefined ? [] : [[`${path} ${long}`, argChoices.join(' ')] as const],
    ),
    ...commands.flatMap((one) => rowsOf(program, one, `${path} ${one.name()}`)),
  ];
}

const bash = (rows: Rows) => `_ops_words() {
  case "$1" in
${rows.map(([after, words]) => `    '${after}') echo '${words}' ;;`).join('\n')}
    *) return 1 ;;
  esac
}
_ops() {
  local at='' last='' word
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
    last=$word
    [[ $word != -* ]] && _ops_words "$at $word" >/dev/null && at="$at $word"
  done
  COMPREPLY=($(compgen -W "$(_ops_words "$at $last" || _ops_words "$at")" -- "$2"))
}
complete -o default -F _ops ops
`;

const fish = (rows: Rows) => `function __ops_words
  switch "$argv"
${rows.map(([after, words]) => `    case '${after}'\n      string split -- ' ' '${words}'`).join('\n')}
    case '*'
      return 1
  end
end
function __ops
  set -l at ''
  set -l last ''
  for word in (commandline -opc)[2..-1]
    set last $word
    if not string match -q -- '-*' $word; and __ops_words "$at $word" >/dev/null
      set at "$at $word"
    end
  end
  __ops_words "$at $last"; or __ops_words "$at"
end
complete -c ops -f -a '(__ops)'
complete -c ops -n '__fish_seen_subcommand_from import' -F
`;

const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], (rows: Rows) => string>> = {
  bash,
  zsh: (rows) => `autoload -U +X compinit bashcompinit && compinit -i && bashcompinit\n${bash(rows)}`,
  fish,
};
