import { problem } from '#features/call-workflow/contract/call-workflow.ts'
import type { CallHost } from '#features/call-workflow/host.ts'
import { adminRun, adminRunDetails, adminRuns } from '#features/portal/contract/main-admin.ts'
import { interventions, runOperations } from '#features/portal/runs/run-administration.ts'
import { GatewayError } from '#kernel/errors.ts'
import { placeAtMount } from '#sdk/api/api-description.ts'
import { problemErrors } from '#sdk/api/json-answer.ts'
import { routed, ServedApi } from '#sdk/api/served-api.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { flag } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'

/** Shows the runs of this installation to administrators, and lets them resolve incidents. */
export default defineFilter({
  className: 'filters.WorkflowAdmin',
  ...withParameters({
    readOnly: flag({ about: '`"true"`: runs are shown, but cannot be retried, skipped or cancelled.' }),
  }),
  answers: true,
  errors: problemErrors,
  api: ({ readOnly }) => (readOnly ? readOnlyApi : workflowAdminApi).served(placeAtMount),
  create: ({ readOnly }, host: CallHost) => workflowAdminApi.filter({ host, readOnly }),
})

interface AdminParts {
  readonly host: CallHost
  readonly readOnly: boolean
}

/** Everything below the URL. */
export const workflowAdminApi = new ServedApi<AdminParts>({
  title: 'Workflow administration API',
  version: '1.0.0',
  answers: { AdminRun: adminRun, AdminRuns: adminRuns, AdminRunDetails: adminRunDetails, Problem: problem },
  bodies: { RetryRun: interventions.retry, SkipRun: interventions.skip, CancelRun: interventions.cancel },
  failure: { description: 'What is wrong', schema: 'Problem', type: 'application/problem+json' },
  operations: routed(
    {
      listIncidents: 'GET /incidents',
      listRuns: 'GET /runs',
      getRun: 'GET /runs/{id}',
      retryRun: 'POST /runs/{id}/retry',
      skipRun: 'POST /runs/{id}/skip',
      cancelRun: 'POST /runs/{id}/cancel',
    },
    runOperations<AdminParts>(({ readOnly }, { subject }) => {
      if (!readOnly) return
      throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" requested a change, but this is read-only`)
    }),
  ),
})
const readOnlyApi = workflowAdminApi.only(({ method }) => method === 'get')
