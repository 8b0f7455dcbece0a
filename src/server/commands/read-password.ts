import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'

/** Where a password comes from. */
export type PasswordInput = NodeJS.ReadableStream & { readonly isTTY?: boolean }

/** Longer than any password that is taken. */
const maxBytes = 4096

/**
 * The first line of the input; from a terminal, typed twice and not shown. Throws an Error when the two differ, and when
 * there is none.
 */
export async function readPassword(input: PasswordInput, prompt: (line: string) => void): Promise<string> {
  const password = input.isTTY === true ? await typedTwice(input, prompt) : await firstLine(input)
  if (password === '') throw new Error('there is no password on standard input')
  return password
}

async function typedTwice(input: PasswordInput, prompt: (line: string) => void): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input, output: silent, terminal: true })
  const ask = (question: string): Promise<string> => {
    prompt(question)
    return new Promise((resolve, reject) => {
      terminal.once('close', () => reject(new Error('no password was typed')))
      terminal.question('', resolve)
    })
  }
  try {
    const first = await ask('Password (it is not shown):')
    if ((await ask('Once more:')) !== first) throw new Error('the two passwords differ')
    return first
  } finally {
    terminal.close()
  }
}

async function firstLine(input: PasswordInput): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of input) {
    const part = Buffer.from(chunk)
    chunks.push(part)
    bytes += part.length
    if (part.includes('\n')) break
    if (bytes > maxBytes) throw new Error('the password on standard input is too long')
  }
  const text = Buffer.concat(chunks).toString()
  return text.split(/\r?\n/, 1)[0] ?? ''
}
