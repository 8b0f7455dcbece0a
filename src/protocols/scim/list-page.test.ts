import { describe, expect, test } from 'vitest'
import { maxCount, parsePage } from '#protocols/scim/list-page.ts'

const page = (query: string) => parsePage(new URLSearchParams(query))

describe('by index (RFC 7644 3.4.2.4)', () => {
  test.each([
    ['', 1, 100],
    ['startIndex=0&count=0', 1, 0],
    ['startIndex=-5&count=-1', 1, 0],
    ['startIndex=%2B3&count=100000', 3, maxCount],
    ['startIndex=&count=', 1, 100],
  ])('%s', (query, startIndex, count) => {
    expect(page(query)).toEqual({ kind: 'index', startIndex, count })
  })

  test.each(['startIndex=x', 'count=1.5', 'count=0x10', 'startIndex=9999999999999999'])('%s is refused', (query) => {
    expect(() => page(query)).toThrow(expect.objectContaining({ keyword: 'invalidValue' }))
  })
})

describe('by cursor (RFC 9865 2)', () => {
  test('an empty cursor asks for the first page, whether it is written with = or not', () => {
    expect(page('cursor&count=10')).toEqual({ kind: 'cursor', cursor: '', count: 10 })
    expect(page('cursor=')).toEqual({ kind: 'cursor', cursor: '', count: 100 })
    expect(page('cursor=VZUTiyhEQJ94IR')).toEqual({ kind: 'cursor', cursor: 'VZUTiyhEQJ94IR', count: 100 })
  })

  test.each(['0', '-1', 'ten', '1.5'])('count=%s is invalidCount', (count) => {
    expect(() => page(`cursor&count=${count}`)).toThrow(
      expect.objectContaining({ status: 400, keyword: 'invalidCount' }),
    )
  })

  test('more than the largest page is the largest page, as maxPageSize is defined', () => {
    expect(page('cursor&count=5000')).toMatchObject({ count: maxCount })
  })

  test('cursor and startIndex contradict each other', () => {
    expect(() => page('cursor&startIndex=1')).toThrow(expect.objectContaining({ keyword: 'invalidValue' }))
  })
})
