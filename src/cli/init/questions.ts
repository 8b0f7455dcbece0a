import { createInterface, type Interface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { fileProblem, messageOf, WrongUsage } from '#cli/command-line/command-line.ts'
import { readSmallFileSync } from '#kernel/small-file.ts'

/** A terminal to ask questions on. */
export interface Terminal {
  readonly input: NodeJS.ReadableStream
  readonly output: { readonly columns?: number; write(text: string): unknown }
}

interface Question<T> {
  /** The option that answers it. */
  readonly option: string
  readonly question: string
  readonly fallback?: string
  /** Throws an Error that says what is wrong. */
  read(text: string): T
}

interface SecretQuestion {
  /** The option that names its file. */
  readonly option: string
  readonly question: string
  /** It is sent in a header. */
  readonly isToken?: true
}

const maxAttempts = 5

/** Takes answers from options, and asks for the others on a terminal. Without a terminal, defaults apply. */
export class Questions {
  readonly #values: Readonly<Record<string, string | undefined>>
  readonly #terminal: Terminal | undefined
  #lines: Interface | undefined
  #isHidden = false

  constructor(values: Readonly<Record<string, string | undefined>>, terminal: Terminal | undefined) {
    this.#values = values
    this.#terminal = terminal
  }

  given(option: string): string | undefined {
    return this.#values[option]
  }

  /** Throws WrongUsage for options that have no effect. */
  refuse(options: readonly string[], because: string): void {
    const found = options.find((option) => this.#values[option] !== undefined)
    if (found !== undefined) throw new WrongUsage(`--${found} has no effect with ${because}`)
  }

  /** Throws WrongUsage for a wrong or missing option, and an Error after several wrong answers. */
  async ask<T>({ option, question, fallback, read }: Question<T>): Promise<T> {
    const given = this.#values[option] ?? (this.#terminal === undefined ? fallback : undefined)
    if (given !== undefined) {
      try {
        return read(given)
      } catch (error) {
        throw new WrongUsage(`--${option}: ${messageOf(error)}`)
      }
    }
    if (this.#terminal === undefined) throw new WrongUsage(`--${option} is required: ${question}`)
    const shown = fallback === undefined ? `${question}: ` : `${question} [${fallback}]: `
    for (let attempt = 1; ; attempt++) {
      const answer = (await this.#line(shown)).trim()
      try {
        return read(answer === '' && fallback !== undefined ? fallback : answer)
      } catch (error) {
        this.#terminal.output.write(`  ${messageOf(error)}\n`)
        if (attempt >= maxAttempts) throw new Error('too many wrong answers; nothing was written')
      }
    }
  }

  /** The content of the option's file, or an answer that the terminal does not show. */
  async askSecret(secret: SecretQuestion & { readonly optional: true }): Promise<string | undefined>
  async askSecret(secret: SecretQuestion): Promise<string>
  async askSecret(secret: SecretQuestion & { readonly optional?: true }): Promise<string | undefined> {
    const { option, question, optional = false } = secret
    const file = this.#values[option]
    if (file !== undefined) return readSecretFile(secret, file)
    if (this.#terminal === undefined) {
      if (optional) return undefined
      throw new WrongUsage(`--${option} is required: ${question}`)
    }
    for (let attempt = 1; ; attempt++) {
      const answer = (await this.#line(`${question} (not shown): `, true)).trim()
      if (answer === '' && optional) return undefined
      const problem = secretProblem(answer, secret)
      if (problem === undefined) return answer
      this.#terminal.output.write(`  it ${problem}\n`)
      if (attempt >= maxAttempts) throw new Error('too many wrong answers; nothing was written')
    }
  }

  close(): void {
    this.#lines?.close()
  }

  /** Rejects when the operator presses Ctrl-C or Ctrl-D. */
  async #line(prompt: string, isHidden = false): Promise<string> {
    const lines = this.#open()
    const left = new AbortController()
    const leave = (): void => left.abort()
    lines.once('close', leave)
    lines.once('SIGINT', leave)
    // readline repaints its prompt, which must stay visible while what is typed is not.
    if (isHidden) this.#terminal?.output.write(prompt)
    this.#isHidden = isHidden
    try {
      return await lines.question(isHidden ? '' : prompt, { signal: left.signal })
    } catch (cause) {
      throw new Error('cancelled; nothing was written', { cause })
    } finally {
      lines.off('close', leave)
      lines.off('SIGINT', leave)
      this.#isHidden = false
      if (isHidden) this.#terminal?.output.write('\n')
    }
  }

  /** One for all questions: the input ends with the first that closes. */
  #open(): Interface {
    const terminal = this.#terminal
    if (terminal === undefined) throw new Error('there is no terminal')
    const output = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        if (!this.#isHidden) terminal.output.write(chunk.toString())
        done()
      },
    })
    // For prompts that are longer than a line.
    Object.defineProperty(output, 'columns', { get: () => terminal.output.columns })
    this.#lines ??= createInterface({ input: terminal.input, output, terminal: true, historySize: 0 })
    return this.#lines
  }
}

function readSecretFile(question: SecretQuestion, file: string): string {
  const { option } = question
  let text: string
  try {
    text = readSmallFileSync(file).replace(/\r?\n$/, '')
  } catch (error) {
    throw new WrongUsage(`--${option}: ${fileProblem(file, error)}`)
  }
  const problem = secretProblem(text, question)
  if (problem !== undefined) throw new WrongUsage(`--${option}: the content of ${file} ${problem}`)
  return text
}

function secretProblem(text: string, { isToken }: SecretQuestion): string | undefined {
  if (text === '') return 'must not be empty'
  if (text.length > 10_000) return 'must have at most 10,000 characters'
  if (isToken === true && !/^[A-Za-z0-9._~+/=-]+$/.test(text))
    return 'is not a token: use letters, digits and - . _ ~ + / ='
  return /\p{Cc}/u.test(text) ? 'must be one line without control characters' : undefined
}
