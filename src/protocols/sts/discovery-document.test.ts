import { expect, test } from 'vitest'
import { type AnswerHeaders, cacheLifetime } from '#protocols/sts/discovery-document.ts'

const date = 'Tue, 01 Jan 2030 00:00:00 GMT'

test.each<[string, AnswerHeaders, number | undefined, number]>([
  ['nothing is said', {}, undefined, 3600],
  ['a life is told', { 'cache-control': 'public, max-age=300' }, undefined, 300],
  ['two are told', { 'cache-control': 'max-age=60, max-age=600' }, undefined, 600],
  ['it stands in quotes and capitals', { 'cache-control': 'Public, Max-Age="90"' }, undefined, 90],
  ['it is no number', { 'cache-control': 'max-age=soon' }, undefined, 3600],
  ['it has no number', { 'cache-control': 'max-age' }, undefined, 3600],
  ['it is negative', { 'cache-control': 'max-age=-5' }, undefined, 3600],
  ['it is not to be kept', { 'cache-control': 'no-store' }, undefined, 0],
  ['only a field of it is not to be kept', { 'cache-control': 'no-cache="set-cookie", max-age=50' }, undefined, 50],
  ['a moment is told', { expires: 'Tue, 01 Jan 2030 00:10:00 GMT', date }, undefined, 600],
  ['the moment has passed', { expires: 'Mon, 31 Dec 2029 00:10:00 GMT', date }, undefined, 0],
  ['the moment is none', { expires: '0', date: 'x' }, undefined, 3600],
  ['a cache gave it', { 'cache-control': 'max-age=300', age: '10' }, undefined, 600],
  ['a cache keeps it longer', { 'cache-control': 'max-age=60, s-maxage=86400', 'x-cache': 'Hit' }, undefined, 86_460],
  ['a cache is known', { 'cache-control': 'max-age=60' }, 86_400, 86_460],
  ['no cache is known', { 'cache-control': 'max-age=60', age: '1' }, 0, 60],
  ['a cache may give what has expired', { 'cache-control': 'max-age=60, stale-if-error=600' }, undefined, 660],
  ['it is kept for ever', { 'cache-control': 'max-age=9999999999' }, undefined, 30 * 86_400],
  ['it is told twice', { 'cache-control': ['max-age=5', 'max-age=7'] }, undefined, 7],
])('when %s', (_name, headers, cdnSeconds, seconds) => {
  expect(cacheLifetime(headers, cdnSeconds)).toBe(seconds)
})
