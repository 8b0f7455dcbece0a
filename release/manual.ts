import { type Command, commands } from '#cli/commands.ts'

/** Shells that `gatehouse completion` writes for. */
const shells = ['bash', 'zsh', 'fish'] as const

/** The manual pages, by file name: one of the program, and one of each command, made of its help. */
export async function manualPages(version: string): Promise<Map<string, string>> {
  const pages = new Map<string, string>()
  const names = Object.keys(commands)
  const list = Object.entries(commands).map(([name, { about }]) => item([name, about]))
  const own = [
    header('gatehouse', version),
    '.SH NAME\ngatehouse \\- an identity portal gateway',
    '.SH SYNOPSIS\n.nf\ngatehouse COMMAND [options]\n.fi',
    '.SH DESCRIPTION\nSCIM gateways onto provisioning workflows, a portal for users with access requests and approvals, self\\-registration, and a token service for Kubernetes workloads, in one process.',
    `.SH COMMANDS\n${list.join('\n')}`,
    '.SH FILES\n.TP\n/etc/gatehouse/config\nConfiguration of the service.\n.TP\n/etc/gatehouse/environment\nVariables and options of the service.\n.TP\n/var/lib/gatehouse\nData of the service: the database and its keys.\n.TP\n/usr/lib/gatehouse/docs\nThe documentation.',
    seeAlso(names.map((name) => `gatehouse-${name}`)),
  ]
  pages.set('gatehouse.1', `${own.join('\n')}\n`)
  for (const [name, command] of Object.entries(commands)) {
    const blocks = (await outputOf(command, ['--help'])).trim().split('\n\n')
    const text = [
      header(`gatehouse-${name}`, version),
      `.SH NAME\ngatehouse\\-${name} \\- ${escaped(command.about)}`,
      ...inOrder(blocks).map(section),
      seeAlso(['gatehouse']),
    ]
    pages.set(`gatehouse-${name}.1`, `${text.join('\n')}\n`)
  }
  return pages
}

/** The scripts that complete words of commands, by shell; none if the program has no such command. */
export async function completions(): Promise<Map<string, string>> {
  const command: Command | undefined = commands['completion']
  if (command === undefined) return new Map()
  const texts = await Promise.all(shells.map(async (shell) => [shell, await outputOf(command, [shell])] as const))
  return new Map(texts)
}

async function outputOf(command: Command, args: string[]): Promise<string> {
  const lines: string[] = []
  const problems: string[] = []
  const io = { stdout: (line: string) => lines.push(line), stderr: (line: string) => problems.push(line) }
  const code = await (await command.load())(args, {
    stdout: (line) => void io.stdout(line),
    stderr: (line) => void io.stderr(line),
  })
  if (code !== 0) throw new Error(`gatehouse ${args.join(' ')} ended with ${code}: ${problems.join('\n')}`)
  return `${lines.join('\n')}\n`
}

const header = (name: string, version: string): string =>
  `.TH "${name.toUpperCase().replaceAll('-', '\\-')}" 1 "" "Gatehouse ${version}" "Gatehouse"`

const seeAlso = (names: readonly string[]): string =>
  `.SH SEE ALSO\n${names.map((name) => `.BR ${escaped(name)} (1)`).join(',\n')}`

/** Pages begin with how to call the command, and then say what it does. */
function inOrder([about = '', ...others]: readonly string[]): string[] {
  const usage = others.filter((block) => block.startsWith('Usage:'))
  return [...usage, `Description:\n${about}`, ...others.filter((block) => !usage.includes(block))]
}

const itemForm = /^ {2}(\S.*?)(?: {2,}(.*))?$/

/** A block of the help: a heading with lines below it, or notes. */
function section(block: string): string {
  const [, heading = '', body = ''] = /^([A-Z][a-z ]+):\n(.*)$/s.exec(block) ?? []
  if (heading === '') return `.PP\n${text(block)}`
  const title = heading === 'Usage' ? 'SYNOPSIS' : heading.toUpperCase()
  if (heading === 'Usage' || heading === 'Examples') {
    return `.SH ${title}\n.nf\n${body
      .split('\n')
      .map((line) => text(line.trim()))
      .join('\n')}\n.fi`
  }
  return `.SH ${title}\n${itemsOf(body)}`
}

/** Names with their meaning, whose further lines stand below the first one. */
function itemsOf(body: string): string {
  const items: [string, string][] = []
  const plain: string[] = []
  for (const line of body.split('\n')) {
    const [, name, meaning = ''] = itemForm.exec(line) ?? []
    const last = items.at(-1)
    if (name !== undefined) items.push([name, meaning])
    else if (last !== undefined && /^ {4}/.test(line)) last[1] += ` ${line.trim()}`
    else plain.push(text(line))
  }
  return [...items.map(item), ...plain].join('\n')
}

const item = ([name, meaning]: readonly [string, string]): string =>
  `.TP\n\\fB${escaped(name)}\\fR\n${text(meaning.trim())}`

/** A dot at its beginning would make a line a request. */
const text = (plain: string): string => escaped(plain).replace(/^(?=[.'])/gm, '\\&')

const escaped = (plain: string): string => plain.replaceAll('\\', '\\e').replaceAll('-', '\\-')
