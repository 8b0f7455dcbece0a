import { useLocalStorage } from '@mantine/hooks'

/** Whether single keys are shortcuts, which users of speech input turn off; stored in this browser. */
export const useShortcutSetting = () =>
  useLocalStorage({ key: 'gatehouse.shortcuts', defaultValue: true, getInitialValueInEffect: false })
