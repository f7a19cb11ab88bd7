// cl_qcom_recordable_queues as Qualcomm's OpenCL SDK declares it; Khronos' headers have none of it. Included by
// library.h, after OpenCL's own headers.
#pragma once

#include <CL/cl.h>

#include <cstddef>

struct _cl_recording_qcom;  // NOLINT(bugprone-reserved-identifier): its name there
using cl_recording_qcom = _cl_recording_qcom*;

// Of a queue that records launches rather than runs them (clCreateCommandQueue's properties).
inline constexpr cl_command_queue_properties CL_QUEUE_RECORDABLE_QCOM = cl_command_queue_properties{1} << 30;

// Overrides of a recorded kernel's arguments and sizes. Never used here: they are broken on some drivers.
struct cl_array_arg_qcom;
struct cl_array_kernel_exec_info_qcom;

using clNewRecordingQCOM_fn = cl_recording_qcom(CL_API_CALL*)(cl_command_queue queue, cl_int* error);
using clEndRecordingQCOM_fn = cl_int(CL_API_CALL*)(cl_recording_qcom recording);
using clReleaseRecordingQCOM_fn = cl_int(CL_API_CALL*)(cl_recording_qcom recording);
using clEnqueueRecordingQCOM_fn = cl_int(CL_API_CALL*)(
    cl_command_queue queue, cl_recording_qcom recording, std::size_t num_args, const cl_array_arg_qcom* args,
    std::size_t num_global_offsets, const cl_array_kernel_exec_info_qcom* global_offsets, std::size_t num_global_sizes,
    const cl_array_kernel_exec_info_qcom* global_sizes, std::size_t num_local_sizes,
    const cl_array_kernel_exec_info_qcom* local_sizes, cl_uint num_events, const cl_event* events, cl_event* event);
