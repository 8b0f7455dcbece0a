export interface Instruction {
  /** In upper case. */
  readonly name: string
  readonly text: string
}

export interface Stage {
  readonly base: string
  readonly name: string | undefined
  readonly instructions: readonly Instruction[]
}

/** The stages of a Dockerfile, in order; the last one is the image. */
export function readDockerfile(text: string): Stage[] {
  const lines = text.replace(/^\s*#.*\n/gm, '').replace(/\\\n/g, ' ')
  const stages: { base: string; name: string | undefined; instructions: Instruction[] }[] = []
  for (const line of lines.split('\n').map((one) => one.trim().replace(/\s+/g, ' '))) {
    if (line === '') continue
    const [word = '', ...rest] = line.split(' ')
    const instruction = { name: word.toUpperCase(), text: rest.join(' ') }
    if (instruction.name === 'FROM') {
      const [base = '', , name] = rest
      stages.push({ base, name, instructions: [] })
    } else {
      const stage = stages.at(-1)
      if (stage === undefined) throw new Error(`before the first FROM: ${line}`)
      stage.instructions.push(instruction)
    }
  }
  return stages
}

/** Whether a .dockerignore excludes a file: the last pattern that matches it, or a folder above it, decides. */
export function dockerIgnore(text: string): (file: string) => boolean {
  const patterns = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ keep: line.startsWith('!'), form: formOf(line.replace(/^!/, '').replace(/\/$/, '')) }))
  return (file) => {
    const parts = file.split('/')
    const paths = parts.map((_, i) => parts.slice(0, i + 1).join('/'))
    const last = patterns.findLast(({ form }) => paths.some((path) => form.test(path)))
    return last !== undefined && !last.keep
  }
}

/** Stars match names that start with a dot too, unlike in a shell. */
function formOf(glob: string): RegExp {
  const parts = glob.split(/(\*\*\/|\*)/).map((part) => {
    if (part === '**/') return '(?:.*/)?'
    return part === '*' ? '[^/]*' : RegExp.escape(part)
  })
  return new RegExp(`^${parts.join('')}$`)
}
