import * as schemas from '#contract/schemas/call-workflow.ts'
import { type ApiAnswer, DescribedApi } from '#modules/shared/http/api-description.ts'
import { callSchema } from './call-body.ts'

const refused = (description: string): ApiAnswer => ({
  description,
  schema: 'Problem',
  type: 'application/problem+json',
})

/** The call itself, and everything below it. */
export const callWorkflowApi = new DescribedApi({
  title: 'Call-workflow API',
  version: '1.0.0',
  answers: {
    StartedRun: schemas.startedRun,
    RunStatus: schemas.runStatus,
    EndedRun: schemas.endedRun,
    Problem: schemas.problem,
  },
  bodies: { WorkflowCall: callSchema },
  failure: refused('What is wrong'),
  operations: [
    {
      path: '',
      method: 'post',
      id: 'callWorkflow',
      summary: 'Runs a workflow',
      body: 'WorkflowCall',
      answers: {
        '200': { description: 'The run is completed', schema: 'StartedRun' },
        '202': { description: 'The run is stored; Location is where to ask for its status', schema: 'StartedRun' },
        '400': refused('The body is not valid'),
        '403': refused('The call asks for something that callers may not ask for here'),
        '422': refused('The body has values that are not allowed'),
      },
    },
    {
      path: '/{workflowId}',
      method: 'get',
      id: 'getRun',
      summary: 'Status and timeline of a run, for the caller who started it',
      query: { after: 'The id of a step: only the steps after it' },
      answers: {
        '200': { description: 'The run', schema: 'RunStatus' },
        '404': refused('The caller started no such run'),
      },
    },
    {
      path: '/{workflowId}',
      method: 'delete',
      id: 'endRun',
      summary: 'Ends a run that has changed no target',
      answers: {
        '200': { description: 'The run is cancelled', schema: 'EndedRun' },
        '202': { description: 'The run will be cancelled when its task ends', schema: 'EndedRun' },
        '409': refused('The run has changed something'),
      },
    },
  ],
})
