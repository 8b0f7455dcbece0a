import { Readable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { subject } from '#testing/login/subjects.ts'
import { fakeRequest } from '#testing/modules/fake-request.ts'
import { answerList } from './list-answer.ts'

/** A list of that many pages with one row each, none of which waits for anything. */
function exported(login: string, pages: number, signal = new AbortController().signal) {
  const request = { ...fakeRequest({ url: 'http://localhost/list?format=csv' }), signal }
  return answerList({ request, subject: subject(`uid=${login},o=x`) }, [], () => ({
    name: 'rows',
    read: async ({ after = '1' }) => ({
      rows: [after],
      next: Number(after) < pages ? String(Number(after) + 1) : undefined,
    }),
    columns: { number: (row: string) => row },
  }))
}

const read = ({ body }: GatewayResponse): Promise<string> => {
  if (!(body instanceof Readable)) throw new Error('a file is sent while it is read')
  return textOf(body)
}
const busy = { code: 'TOO_MANY_REQUESTS', retryAfter: 5 }

test('a user exports two files at a time, and all users eight', async () => {
  const files = [await exported('ann', 3), await exported('ann', 3)]
  await expect(exported('ann', 3)).rejects.toMatchObject(busy)
  for (const login of ['bob', 'cat', 'dan']) files.push(await exported(login, 1), await exported(login, 1))
  await expect(exported('eve', 1)).rejects.toMatchObject(busy)
  expect(await read(files[0] as GatewayResponse)).toBe('\ufeffnumber\r\n1\r\n2\r\n3\r\n')
  files.push(await exported('ann', 1))
  for (const file of files.slice(1)) await read(file)
  await read(await exported('eve', 1))
})

test('an export lets others work between two pages, and ends when its client goes', async () => {
  const gone = new AbortController()
  const reading = read(await exported('ann', 100_000, gone.signal))
  setImmediate(() => setImmediate(() => gone.abort()))
  await expect(reading).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' })
  const files = [await exported('ann', 1), await exported('ann', 1)]
  for (const file of files) await read(file)
})
