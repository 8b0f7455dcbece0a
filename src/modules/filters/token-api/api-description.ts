import * as schemas from '#contract/schemas/token.ts'
import { DescribedApi } from '#modules/shared/http/api-description.ts'

/** Everything below `/token`. */
export const tokenApiDescription = new DescribedApi({
  title: 'Token API',
  version: '1.0.0',
  answers: {
    TokenConfig: schemas.tokenConfig,
    TokenUser: schemas.tokenUser,
    TokenState: schemas.tokenState,
    TokenErrors: schemas.tokenErrors,
  },
  bodies: {},
  failure: { description: 'What is wrong', schema: 'TokenErrors' },
  operations: [
    {
      path: '/config',
      method: 'get',
      id: 'getConfig',
      summary: 'What the token page needs to know',
      answers: { '200': { description: 'The page', schema: 'TokenConfig' } },
    },
    {
      path: '/user',
      method: 'get',
      id: 'getTokens',
      summary: 'The tokens of the session; reading changes nothing',
      answers: { '200': { description: 'The tokens', schema: 'TokenUser' } },
    },
    {
      path: '/user',
      method: 'post',
      id: 'renewTokens',
      summary: 'Makes new tokens within the session, where that is configured',
      answers: {
        '200': { description: 'The new tokens', schema: 'TokenUser' },
        '403': { description: 'New tokens require logging out and in', schema: 'TokenErrors' },
      },
    },
  ],
})
