import { Button, Stack } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { requestPlan } from '../../../api/reconciliations.ts'
import { useConfig } from '../../../app/config.tsx'
import { useTranslation } from '../../../app/i18n.tsx'
import { Icon } from '../../../components/icon.tsx'
import { useSay } from '../../../components/notices.tsx'
import { Failure } from '../../../components/states.tsx'

interface RequestPlanButtonProps {
  readonly name: string
  /** Whether it is the main action of the page. */
  readonly isMain?: boolean
}

/** Requests a comparison and opens its plan, or the one that is under way. Nothing for administrators who only watch. */
export function RequestPlanButton({ name, isMain = false }: RequestPlanButtonProps) {
  const { t } = useTranslation()
  const { operator } = useConfig()
  const navigate = useNavigate()
  const client = useQueryClient()
  const say = useSay()
  const request = useMutation({
    mutationFn: () => requestPlan(name),
    onSuccess: async ({ plan, isNew }) => {
      if (!isNew) say(t('plans.underWay'))
      await navigate({ to: '/console/plans/$id', params: { id: plan.id } })
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['admin'] }),
  })
  if (!operator) return null
  return (
    <Stack gap="xs">
      <Button
        variant={isMain ? 'filled' : 'default'}
        leftSection={<Icon name="refresh" size={18} />}
        loading={request.isPending}
        onClick={() => request.mutate()}
      >
        {t('plans.request')}
      </Button>
      {request.error !== null && <Failure error={request.error} />}
    </Stack>
  )
}
