import { expect, it } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { userSource } from '#identity/mapping/mapped-value.ts'
import { Issues } from '#kernel/issues.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParseContext } from '#testing/modules/fake-parse.ts'
import uuidGenerator from './uuid-generator.ts'

it('returns a new random UUID every time', async () => {
  const instance = uuidGenerator.prepare([''], [], new Issues(), fakeParseContext())
  const mapper = await instance?.create(fakeModuleHost())
  const source = userSource({ userID: 'a', groups: [], attributes: new Attributes() })
  const [first, second] = [await mapper?.map(source, 'id'), await mapper?.map(source, 'id')]
  expect(first).toEqual([
    expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
  ])
  expect(second).not.toEqual(first)
})

it('takes no parameters', () => {
  const issues = new Issues()
  expect(uuidGenerator.prepare(['x'], [], issues, fakeParseContext())).toBeUndefined()
  expect(issues.list).toMatchObject([{ message: 'the mapper takes no parameters; given: 1' }])
})
