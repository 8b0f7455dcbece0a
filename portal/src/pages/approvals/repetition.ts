import type { ApprovalDetails } from '#features/portal/contract/main-requests.ts'
import type { PreviewStep } from '#sdk/contract/preview.ts'

export type Submitted = ApprovalDetails['userObj']['attribs']

/** The step without values that a new account takes over from the submitted ones, under the same name. */
export function withoutRepetition(step: PreviewStep, submitted: Submitted): PreviewStep {
  if (step.kind !== 'user' || step.action !== 'create') return step
  const repeats = ({ name, after }: (typeof step.attributes)[number]): boolean =>
    Object.hasOwn(submitted, name) && submitted[name]?.values.join('\n') === after.join('\n')
  return { ...step, attributes: step.attributes.filter((attribute) => !repeats(attribute)) }
}
