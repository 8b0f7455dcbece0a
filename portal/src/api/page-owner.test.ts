import { afterEach, beforeEach, expect, test, vi } from 'vitest'

let reloads = 0
beforeEach(() => {
  reloads = 0
  vi.resetModules()
  vi.stubGlobal('window', { location: { reload: () => (reloads += 1) } })
})
afterEach(() => void vi.unstubAllGlobals())

/** Like a page that was just loaded. */
const load = () => import('./page-owner.ts')

test('a page of another user is reloaded once, however many calls detect it', async () => {
  const { reloadPage } = await load()
  expect(reloads).toBe(0)
  const found = [reloadPage(), reloadPage()]
  await Promise.resolve()
  found.push(reloadPage())
  expect(reloads).toBe(1)
  const still = 'still waiting'
  expect(await Promise.race([...found, Promise.resolve(still)])).toBe(still)
})

test('a page belongs to the first user it learns of, encoded for headers', async () => {
  const { noteOwner, ownerHeader } = await load()
  expect(ownerHeader()).toEqual({})
  noteOwner('uid=jürgen,o=Tremolo')
  noteOwner('uid=ada,o=Tremolo')
  expect(ownerHeader()).toEqual({ 'x-page-of': 'uid%3Dj%C3%BCrgen%2Co%3DTremolo' })
})
