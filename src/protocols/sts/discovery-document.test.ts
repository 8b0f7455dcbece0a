import { expect, test } from 'vitest'
import { type AnswerHeaders, cacheLifetime } from '#protocols/sts/discovery-document.ts'

const date = 'Tue, 01 Jan 2030 00:00:00 GMT'

test.each<[string, AnswerHeaders, number | undefined, number]>([
  ['there is no header', {}, undefined, 3600],
  ['there is a lifetime', { 'cache-control': 'public, max-age=300' }, undefined, 300],
  ['there are two lifetimes', { 'cache-control': 'max-age=60, max-age=600' }, undefined, 600],
  ['it is in quotes and capitals', { 'cache-control': 'Public, Max-Age="90"' }, undefined, 90],
  ['it is not a number', { 'cache-control': 'max-age=soon' }, undefined, 3600],
  ['it has no number', { 'cache-control': 'max-age' }, undefined, 3600],
  ['it is negative', { 'cache-control': 'max-age=-5' }, undefined, 3600],
  ['it must not be cached', { 'cache-control': 'no-store' }, undefined, 0],
  ['only one header must not be cached', { 'cache-control': 'no-cache="set-cookie", max-age=50' }, undefined, 50],
  ['there is an expiry', { expires: 'Tue, 01 Jan 2030 00:10:00 GMT', date }, undefined, 600],
  ['the expiry has passed', { expires: 'Mon, 31 Dec 2029 00:10:00 GMT', date }, undefined, 0],
  ['the expiry is invalid', { expires: '0', date: 'x' }, undefined, 3600],
  ['a cache served it', { 'cache-control': 'max-age=300', age: '10' }, undefined, 600],
  ['a cache keeps it longer', { 'cache-control': 'max-age=60, s-maxage=86400', 'x-cache': 'Hit' }, undefined, 86_460],
  ['a cache is known', { 'cache-control': 'max-age=60' }, 86_400, 86_460],
  ['no cache is known', { 'cache-control': 'max-age=60', age: '1' }, 0, 60],
  ['a cache may serve expired content', { 'cache-control': 'max-age=60, stale-if-error=600' }, undefined, 660],
  ['the lifetime is endless', { 'cache-control': 'max-age=9999999999' }, undefined, 30 * 86_400],
  ['the header appears twice', { 'cache-control': ['max-age=5', 'max-age=7'] }, undefined, 7],
])('when %s', (_name, headers, cdnSeconds, seconds) => {
  expect(cacheLifetime(headers, cdnSeconds)).toBe(seconds)
})
