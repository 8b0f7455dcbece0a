import { expect, test } from 'vitest'
import { WaitingRoom } from '#engine/sts/waiting-room.ts'

/** Work that ends when it is told to. */
function work() {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  return { serve: () => promise, resolve, reject }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a few are served at a time, the others in their order, also after one that fails', async () => {
  const room = new WaitingRoom({ clock: () => new Date(0), atOnce: 2 })
  const entered: number[] = []
  const works = [work(), work(), work(), work()]
  const through = works.map((one, i) =>
    room.through(() => {
      entered.push(i)
      return one.serve()
    }),
  )
  await turn()
  expect(entered).toEqual([0, 1])
  works[1]?.reject(new Error('no'))
  await expect(through[1]).rejects.toThrow('no')
  await turn()
  expect(entered).toEqual([0, 1, 2])
  for (const one of works) one.resolve('done')
  await expect(Promise.all([through[0], through[2], through[3]])).resolves.toEqual(['done', 'done', 'done'])
  await expect(room.through(async () => 'later')).resolves.toBe('later')
})

test('whoever finds no seat is asked to come back, and is not served', async () => {
  const room = new WaitingRoom({ clock: () => new Date(0), atOnce: 1, seats: 1 })
  const first = work()
  const [served, seated] = [room.through(first.serve), room.through(async () => 'second')]
  const refused = room.through(() => Promise.reject(new Error('was served')))
  await expect(refused).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS', keyword: 'slow_down' })
  await expect(refused).rejects.toSatisfy(({ retryAfter }) => retryAfter >= 1 && retryAfter <= 5)
  first.resolve('first')
  await expect(Promise.all([served, seated])).resolves.toEqual(['first', 'second'])
})

test('whoever sat for too long is sent away, and the next one is served', async () => {
  let now = 0
  const room = new WaitingRoom({ clock: () => new Date(now), atOnce: 1, longestMillis: 1000 })
  const first = work()
  const served = room.through(first.serve)
  const late = room.through(() => Promise.reject(new Error('was served')))
  now = 1001
  const fresh = room.through(async () => 'fresh')
  first.resolve('first')
  await expect(late).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' })
  await expect(Promise.all([served, fresh])).resolves.toEqual(['first', 'fresh'])
})
