import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { catalog } from '#catalog/catalog.ts'
import { parameters } from '#features/portal/front/main-settings.ts'
import { bulkSchema } from '#features/portal/main/approvals.ts'
import { cartSchema } from '#features/portal/main/submit.ts'
import { exportsAtOnce, maxExported } from '#features/portal/runs/list-answer.ts'
import { registerParameters } from '#features/registration/register-settings.ts'
import { usualLimits } from '#features/reports/report-endpoint.ts'
import { maxBulkOperations, maxBulkPayload } from '#features/scim/gateway/bulk.ts'
import { maxCandidates } from '#features/scim/gateway/lists.ts'
import { maxReviewBytes } from '#protocols/admission/admission-review.ts'
import { maxFilterDepth } from '#protocols/scim/filter/parse-filter.ts'
import { maxCount } from '#protocols/scim/lists.ts'
import { maxOperations } from '#protocols/scim/patch/parse-patch.ts'
import { longestForm } from '#protocols/sts/token-exchange.ts'
import { defaultConnectionLimits, httpLimits } from '#requests/listener/http-limits.ts'
import { descriptionOf } from '#sdk/module/parameter-types.ts'

const page = readFileSync('docs/reference/limits.md', 'utf8')
const rows = page.split('\n').filter((line) => line.startsWith('| '))

/** Numbers as the page writes them. */
const words = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight']
const count = (value: number): string => words[value] ?? value.toLocaleString('en-US')
const size = (bytes: number): string =>
  bytes % 1024 ** 2 === 0 ? `${bytes / 1024 ** 2} MiB` : `${(bytes / 1024).toLocaleString('en-US')} KiB`

const shape = (schema: z.ZodType): unknown => z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
const cart = shape(cartSchema) as {
  maxItems: number
  items: { properties: { subjects: { anyOf: { maxItems?: number }[] } } }
}
const subjects = cart.items.properties.subjects.anyOf.find(({ maxItems }) => maxItems !== undefined)?.maxItems ?? 0
const decisions = shape(bulkSchema) as { properties: { approvals: { maxItems: number } } }

const fallback = (parameter: Parameters<typeof descriptionOf>[0]): number => Number(descriptionOf(parameter).fallback)

describe('the page of limits', () => {
  test.each([
    ['| Body, unless', [size(httpLimits.bodyBytes), size(httpLimits.discardedBytes)]],
    ['| Headers', [size(httpLimits.headerBytes), `${httpLimits.headerCount} headers`]],
    ['| Path', [`${count(httpLimits.pathCharacters)} characters`]],
    ['| Time for the request', [`${defaultConnectionLimits.requestSeconds} seconds`]],
    ['| Time for the answer', [`${httpLimits.answerSeconds} seconds`]],
    ['| Requests of one connection', [count(httpLimits.pipelinedRequests)]],
    [
      '| [filters.Main](filters/filters.Main.md) PUT /workflows',
      [`${cart.maxItems} lines`, `${subjects} users`, `(${count(fallback(parameters.maxOpenRequests))})`],
    ],
    ['| PUT /approvals |', [`${decisions.properties.approvals.maxItems} approvals`]],
    [
      '| GET /reports/{name}',
      [
        `${count(usualLimits.rows.json)} rows (JSON, xlsx)`,
        `${count(usualLimits.rows.csv)} (csv)`,
        `${usualLimits.timeoutMillis / 1000} seconds`,
      ],
    ],
    [
      '| GET /admin/',
      [
        `${count(maxExported)} rows`,
        `${count(exportsAtOnce.perUser)} files at a time`,
        `${count(exportsAtOnce.total)} of all users`,
      ],
    ],
    [
      '| [filters.Register](filters/filters.Register.md) POST /submit',
      [
        `${fallback(registerParameters.submitsPerMinute)} per minute and address`,
        `${fallback(registerParameters.submitsPerValuePerHour)} per hour and value`,
      ],
    ],
    ['| GET /values', [`${fallback(registerParameters.readsPerMinute)} per minute`]],
    [
      '| [filters.ScimGateway](filters/filters.ScimGateway.md) GET lists',
      [`a page of ${maxCount}`, `${maxFilterDepth} levels`, `${count(maxCandidates)} resources`],
    ],
    ['| Changes of users and groups', [`${count(maxOperations)} operations of a PATCH`]],
    ['| POST /Bulk', [size(maxBulkPayload), `${count(maxBulkOperations)} operations`]],
    ['| [filters.StsToken]', [size(longestForm)]],
    ['| [filters.StsInjector]', [size(maxReviewBytes)]],
  ] as const)('%s has the numbers of the code', (start, numbers) => {
    const row = rows.find((line) => line.startsWith(start)) ?? ''
    expect(numbers.filter((number) => !row.includes(number))).toEqual([])
  })

  test('has every filter', () => {
    expect(catalog.filters.names().filter((name) => !page.includes(`[${name}]`))).toEqual([])
  })
})
