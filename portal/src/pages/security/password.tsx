import { Button, Group, Modal, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { PasswordRuleView } from '#features/account/contract/account.ts'
import { accountQuery, changePassword, sessionsQuery } from '../../api/account.ts'
import { ApiError } from '../../api/call.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { DialogFooter } from '../../components/dialog-footer.tsx'
import { useSay } from '../../components/notices.tsx'
import { PasswordFields } from '../../components/password-fields.tsx'
import { passwordProblem } from '../../components/password-strength.ts'
import { Failure } from '../../components/states.tsx'
import { SubmitButton } from '../../components/submit-button.tsx'

/** Shown to users whose password can be changed here. */
export function Password() {
  const { t } = useTranslation()
  const account = useQuery(accountQuery)
  const [open, setOpen] = useState(false)
  const { password: rules, login = '', displayName = '' } = account.data ?? {}
  if (rules === undefined) return null
  return (
    <Stack component="section" aria-label={t('security.password')} gap="sm">
      <Group justify="space-between">
        <Title order={2} size="h4">
          {t('security.password')}
        </Title>
        <Button variant="default" onClick={() => setOpen(true)}>
          {t('security.changePassword')}
        </Button>
      </Group>
      <Text c="dimmed">{t('security.passwordText')}</Text>
      {open && <PasswordDialog rules={rules} userValues={[login, displayName]} onClose={() => setOpen(false)} />}
    </Stack>
  )
}

interface PasswordDialogProps {
  readonly rules: PasswordRuleView
  /** Values of the user that must not be the password. */
  readonly userValues: readonly string[]
  readonly onClose: () => void
}

function PasswordDialog({ rules, userValues, onClose }: PasswordDialogProps) {
  const { t, tn } = useTranslation()
  const client = useQueryClient()
  const say = useSay()
  const [current, setCurrent] = useState('')
  const [password, setPassword] = useState('')
  const [repeated, setRepeated] = useState('')
  const [left, setLeft] = useState<readonly string[]>([])
  const change = useMutation({
    mutationFn: () => changePassword({ currentPassword: current, newPassword: password }),
    onSuccess: ({ ended }) => {
      say(ended === 0 ? t('security.passwordChanged') : tn('security.passwordChangedEnded', ended))
      void client.invalidateQueries({ queryKey: sessionsQuery.queryKey })
      onClose()
    },
  })
  const problem = passwordProblem(password, rules, userValues)
  const isWrong = change.error instanceof ApiError && change.error.code === 'WRONG_PASSWORD'
  const currentProblem = isWrong ? t('security.wrongPassword') : t('register.required')
  const isRepeated = password === repeated
  const send = (event: FormEvent): void => {
    event.preventDefault()
    setLeft(['password', 'password2'])
    if (current !== '' && problem === undefined && isRepeated) change.mutate()
  }
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={t('security.changePassword')}
      closeOnClickOutside={false}
      closeButtonProps={{ 'aria-label': t('action.close') }}
    >
      <form onSubmit={send} noValidate>
        <Stack>
          <PasswordInput
            label={t('security.currentPassword')}
            required
            autoComplete="current-password"
            value={current}
            onChange={(event) => {
              setCurrent(event.currentTarget.value)
              if (isWrong) change.reset()
            }}
            error={isWrong || (left.length > 0 && current === '') ? currentProblem : undefined}
            visibilityToggleButtonProps={{
              'aria-label': t('register.showPassword'),
              tabIndex: 0,
              'aria-hidden': false,
            }}
            data-autofocus
          />
          <PasswordFields
            ids={['new-password', 'new-password2']}
            label={t('security.newPassword')}
            rules={rules}
            password={password}
            repeated={repeated}
            userValues={userValues}
            onPassword={setPassword}
            onRepeated={setRepeated}
            onBlur={(which) => setLeft((known) => [...known, which])}
            error={left.includes('password') && problem !== undefined ? t(problem.key, problem.values) : undefined}
            repeatedError={left.includes('password2') && !isRepeated ? t('register.passwordsDiffer') : undefined}
          />
          {change.error !== null && !isWrong && <Failure error={change.error} />}
          <DialogFooter onCancel={onClose}>
            <SubmitButton loading={change.isPending}>{t('security.changePassword')}</SubmitButton>
          </DialogFooter>
        </Stack>
      </form>
    </Modal>
  )
}
