import {
  type CommandDescription,
  type CommandTable,
  defineCommand,
  describeCommand,
  type RunCommand,
  unknownAction,
  WrongUsage,
} from '#cli/command-line/command-line.ts'
import { outputOption } from '#cli/command-line/options.ts'
import { suggestion } from '#kernel/suggest.ts'

/** The help of the commands of a table. */
export const helpCommand = (commands: CommandTable): RunCommand =>
  defineCommand({
    name: 'help',
    about: 'Show what commands there are, or the help of a command or of one of its actions.',
    usage: '[COMMAND [ACTION]]',
    arguments: ['[COMMAND]', '[ACTION]'],
    options: outputOption,
    examples: ['gatehouse help check', 'gatehouse help keys rotate'],
    run: async (_, [name, action], io) => {
      if (name === undefined) {
        for (const line of overview(commands)) io.stdout(line)
        io.result(Object.entries(commands).map(([word, { about }]) => ({ name: word, about })))
        return 0
      }
      const command = Object.hasOwn(commands, name) ? commands[name] : undefined
      if (command === undefined) {
        throw new WrongUsage(`unknown command "${name}"${suggestion(name, Object.keys(commands))}`)
      }
      const run = await command.load()
      const description = await describeCommand(run)
      if (action === undefined) {
        io.result(description)
        return io.isJson ? 0 : run(['--help'], io)
      }
      io.result(actionOf(description, action))
      return io.isJson ? 0 : run([action, '--help'], io)
    },
  })

/** Throws WrongUsage. */
function actionOf({ name, actions }: CommandDescription, word: string): CommandDescription {
  const found = actions.find((action) => action.name === `${name} ${word}`)
  if (found !== undefined) return found
  if (actions.length === 0) throw new WrongUsage(`"gatehouse ${name}" has no actions`)
  return unknownAction(
    word,
    actions.map((action) => action.name.slice(name.length + 1)),
  )
}

/** All commands, in a line each. */
export function overview(commands: CommandTable): string[] {
  const width = Math.max(...Object.keys(commands).map((name) => name.length))
  return [
    'Gatehouse is an identity portal gateway.',
    '',
    'Usage:',
    '  gatehouse COMMAND [options]',
    '',
    'Commands:',
    ...Object.entries(commands).map(([name, { about }]) => `  ${name.padEnd(width)}  ${about}`),
    '',
    'Options:',
    '  --help, -h     Show help, also of a command',
    '  --version, -v  Show the version; "gatehouse version" shows more',
  ]
}
