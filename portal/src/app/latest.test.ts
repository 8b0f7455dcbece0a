import { expect, test } from 'vitest'
import { latest } from './latest.ts'

test('the latest request counts, in any order of answers', async () => {
  const waiting = new Map<string, PromiseWithResolvers<string>>()
  const load = latest((name: string) => {
    const answer = Promise.withResolvers<string>()
    waiting.set(name, answer)
    return answer.promise
  })
  const [slow, broken, last] = [load('slow'), load('broken'), load('last')]
  waiting.get('last')?.resolve('texts')
  waiting.get('broken')?.reject(new Error('gone'))
  waiting.get('slow')?.resolve('too late')
  expect(await Promise.all([slow, broken, last])).toEqual([undefined, undefined, 'texts'])
  const alone = load('alone')
  waiting.get('alone')?.reject(new Error('gone'))
  await expect(alone).rejects.toThrow('gone')
})
