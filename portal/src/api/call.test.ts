import { expect, test } from 'vitest'
import { apiRequest } from './call.ts'

test('a call has the method of its route, the names in its path, encoded, and the parameters that have a value', () => {
  const query = { after: undefined, state: ['ready', 'failed'], q: 'a&b' }
  expect(apiRequest('/main', 'PUT /approvals/{id}/of/{name}', [{ id: 'a/b', name: 'ü' }, query])).toEqual({
    method: 'PUT',
    address: '/main/approvals/a%2Fb/of/%C3%BC?state=ready&state=failed&q=a%26b',
  })
  expect(apiRequest('/account', 'GET', [])).toEqual({ method: 'GET', address: '/account' })
})
