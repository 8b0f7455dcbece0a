import { type CommandTable, defineCommand, type RunCommand, WrongUsage } from '#cli/command-line/command-line.ts'
import { printText } from '#cli/command-line/output.ts'
import { bashCompletion } from '#cli/completion/bash.ts'
import { fishCompletion } from '#cli/completion/fish.ts'
import { completionPlaces } from '#cli/completion/places.ts'
import { zshCompletion } from '#cli/completion/zsh.ts'
import { suggestion } from '#kernel/suggest.ts'

const shells = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const
const names = Object.keys(shells) as (keyof typeof shells)[]

/** Completes the commands of a table. */
export const completionCommand = (commands: CommandTable): RunCommand =>
  defineCommand({
    name: 'completion',
    about: 'Print the script with which a shell completes commands, actions, options and their values.',
    usage: names.join('|'),
    arguments: ['SHELL'],
    options: {},
    notes: 'The script has all words: pressing Tab starts no program. Print it again after an upgrade.',
    examples: [
      'source <(gatehouse completion bash)',
      'gatehouse completion zsh > "${fpath[1]}/_gatehouse"',
      'gatehouse completion fish > ~/.config/fish/completions/gatehouse.fish',
    ],
    run: async (_, [given = ''], io) => {
      const shell = names.find((name) => name === given)
      if (shell === undefined) {
        throw new WrongUsage(`SHELL must be one of ${names.join(', ')}${suggestion(given, names)}`)
      }
      printText(shells[shell](await completionPlaces(commands)), io)
    },
  })
