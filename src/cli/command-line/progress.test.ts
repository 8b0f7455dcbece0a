import { afterEach, expect, test, vi } from 'vitest'
import { Progress } from './progress.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

function terminal({ isTTY = true, columns = 60 } = {}) {
  const written: string[] = []
  let time = 0
  const progress = new Progress({ isTTY, columns, write: (text) => written.push(text) }, () => time)
  const at = (millis: number, text: string): void => {
    time = millis
    progress.update(text)
  }
  return { written, progress, at }
}

const clear = '\r\u001b[K'

test('a long command rewrites one line, and removes it', () => {
  vi.stubEnv('TERM', 'xterm')
  const { written, progress, at } = terminal()
  at(100, 'a')
  at(500, 'b')
  at(550, 'c')
  at(700, 'd')
  progress.end()
  progress.end()
  expect(written).toEqual([`${clear}b`, `${clear}d`, clear])
})

test('a short command, a pipe and a terminal that cannot rewrite lines show nothing', () => {
  vi.stubEnv('TERM', 'xterm')
  const short = terminal()
  short.at(499, 'a')
  short.progress.end()
  const pipe = terminal({ isTTY: false })
  pipe.at(9000, 'a')
  pipe.progress.end()
  vi.stubEnv('TERM', 'dumb')
  const dumb = terminal()
  dumb.at(9000, 'a')
  dumb.progress.end()
  expect([short.written, pipe.written, dumb.written]).toEqual([[], [], []])
})

test('the line is shorter than the terminal, and has no control characters', () => {
  vi.stubEnv('TERM', 'xterm')
  const { written, at } = terminal()
  at(9000, `\u001b[2J${'x'.repeat(200)}`)
  const line = written.join('').slice(clear.length)
  expect(line).toHaveLength(59)
  expect(line).not.toMatch(/\p{Cc}/u)
})

test('the result of the work is passed on, and its failure', async () => {
  const { progress } = terminal()
  expect(await progress.during('working', Promise.resolve(1))).toBe(1)
  await expect(progress.during('working', Promise.reject(new Error('no')))).rejects.toThrow('no')
})
